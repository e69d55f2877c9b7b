// Package proptest bounds property tests. It is imported by tests only.
package proptest

import (
	"flag"
	"strconv"

	_ "pgregory.net/rapid" // registers the flag
)

// checksFlag is how many checks rapid makes of each property.
const checksFlag = "rapid.checks"

// Checks has each property of a test binary checked so many times unless the
// command line says how often: on real stores one check is worth thousands of
// those in memory, for which rapid's default is made. It parses the flags and is
// to be called by TestMain, before the tests run.
func Checks(n int) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == checksFlag })
	if asked {
		return
	}
	if err := flag.Set(checksFlag, strconv.Itoa(n)); err != nil {
		panic(err) // rapid knows the flag no more
	}
}
