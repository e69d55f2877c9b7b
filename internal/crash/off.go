//go:build !crashpoints

// Package crash names the steps between which the process may die. In an
// ordinary build a point does nothing and costs nothing; built with the tag
// crashpoints, the process kills itself at the point that the environment
// names, so that tests can stop it between any two steps.
package crash

// Point marks a step. It does nothing in this build.
func Point(string) {}
