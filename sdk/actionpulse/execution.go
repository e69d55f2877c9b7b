package actionpulse

// Executions is a group of methods of [Client].
type Executions struct{ link *link }
