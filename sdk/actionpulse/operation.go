package actionpulse

// Operations is a group of methods of [Client].
type Operations struct{ link *link }
