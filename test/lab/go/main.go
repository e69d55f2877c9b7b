// Command go is the Go SDK as a client under test, for
//
//	actionpulse lab client --scale 0.05 --clock -- <this program>
package main

import (
	"context"
	"os"

	"github.com/actionpulse/actionpulse/test/lab/gosdk"
)

func main() { os.Exit(gosdk.Run(context.Background(), gosdk.World{Getenv: os.Getenv, Log: os.Stderr})) }
