module github.com/hoplag/hoplag

go 1.24
