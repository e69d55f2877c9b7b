package actionpulse

// IdempotencyKeys is a group of methods of [Client].
type IdempotencyKeys struct{ link *link }
