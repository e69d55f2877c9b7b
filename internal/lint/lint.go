// Package lint owns the tests that check the source itself: which package may
// import which, what tests may not do, how long files may be. It holds no code
// that runs.
package lint
