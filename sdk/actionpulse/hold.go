package actionpulse

// Holds is a group of methods of [Client].
type Holds struct{ link *link }
