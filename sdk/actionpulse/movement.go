package actionpulse

// Movements is a group of methods of [Client].
type Movements struct{ link *link }
