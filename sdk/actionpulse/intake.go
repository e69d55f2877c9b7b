package actionpulse

// Intake is a group of methods of [Client].
type Intake struct{ link *link }
