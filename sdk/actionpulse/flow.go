package actionpulse

// Flows is a group of methods of [Client].
type Flows struct{ link *link }
