package actionpulse

// Server is a group of methods of [Client].
type Server struct{ link *link }
