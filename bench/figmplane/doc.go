// Package figmplane measures MPLANE: how much probing upgraded routers save and how much shorter they make
// segments (section VI, Fig. 9), and how often a slow router or link is named.
package figmplane
