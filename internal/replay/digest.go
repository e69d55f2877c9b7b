package replay

import (
	"crypto/sha256"
	"fmt"

	"github.com/actionpulse/actionpulse/idempotency"
)

// compared is how the events of two requests are compared: as other bodies are,
// by value and not by spelling.
var compared = idempotency.NormalJSON(idempotency.Field{Name: "events", Depth: maxDepth})

// digestOf returns a digest that is the same for events that say the same. What
// it computes must not change between releases: stored marks outlive them.
func digestOf(events []byte) ([sha256.Size]byte, error) {
	body := make([]byte, 0, len(events)+len(`{"events":}`))
	body = append(append(append(body, `{"events":`...), events...), '}')
	text, err := compared.Print(&idempotency.Request{Body: body}).MarshalBinary()
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("compute the digest of events: %w", err)
	}
	return sha256.Sum256(text), nil
}
