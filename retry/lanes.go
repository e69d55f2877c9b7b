package retry

import "sync"

// Lanes keep to one request at a time for a credential after a failure, until
// one succeeds. The zero value is ready; it may be shared by transports.
type Lanes struct {
	mu sync.Mutex
}
