package hashing

// Split is exported to the tests, which are in package hashing_test.
var Split = split
