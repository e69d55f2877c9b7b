package main

// labCommand is the kit that tries clients and servers which are to repeat
// requests without doing work twice.
type labCommand struct {
	Proxy  labProxyCommand  `cmd:"" help:"Break the network between a client and a server, by a seed."`
	Client labClientCommand `cmd:"" help:"Judge a client by a server that misbehaves."`
}
