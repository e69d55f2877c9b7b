package actionpulse

// Customers is a group of methods of [Client].
type Customers struct{ link *link }
