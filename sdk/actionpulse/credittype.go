package actionpulse

// CreditTypes is a group of methods of [Client].
type CreditTypes struct{ link *link }
