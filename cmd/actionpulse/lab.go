package main

import "math/rand/v2"

// labCommand is the kit that tries clients and servers which are to repeat
// requests without doing work twice.
type labCommand struct {
	Proxy  labProxyCommand  `cmd:"" help:"Break the network between a client and a server, by a seed."`
	Client labClientCommand `cmd:"" help:"Judge a client by a server that misbehaves."`
	Server labServerCommand `cmd:"" help:"Judge a server by repeats, races, a broken network and restarts."`
}

// randomSeed is a seed that nobody gave: it is printed, and short enough to be
// typed.
func randomSeed() uint64 {
	return 1 + rand.Uint64N(1<<32-1) //nolint:gosec // it hides nothing
}
