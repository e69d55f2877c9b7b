package judgeserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// The flaws that a shop may have.
const (
	insertLast   = "reads the key, works, and inserts the key at the end"
	failLoser    = "answers 500 to who loses a race"
	busyLoser    = "answers 409 to who loses a race, and when to come again"
	vagueLoser   = "answers 409 to who loses a race, without a word"
	forgetful    = "forgets its keys when it is restarted"
	anyBody      = "answers whatever body a key comes with"
	otherWork    = "works again if the body is another"
	firstKey     = "takes the first of two keys"
	noKey        = "works without a key"
	longKeys     = "takes keys of any length"
	keepsRefusal = "keeps a refusal for the key"
	bodyIsKey    = "tells work apart by the body and not by the key"
	halfBody     = "works with half a body"
	unmarked     = "does not mark repeats"
	marksAll     = "marks every answer as a repeat's"
	naive        = "does not look at keys"
	strict       = "refuses everything"
)

// entry is what a key names.
type entry struct {
	body    string
	status  int
	answer  string
	pending bool
}

// shop is a server that takes orders, each once for a key, unless it has a flaw.
type shop struct {
	flaw string
	// atOnce is how many requests race.
	atOnce int

	mu      sync.Mutex
	keys    map[string]*entry
	orders  map[string][]string
	made    int
	trial   string
	arrived map[string]int
	// all is closed when a race has all its requests.
	all map[string]chan struct{}
	// taken is told of each order of a trial.
	taken chan struct{}
	// cut is how many requests were cut off.
	cut int
}

func newShop(flaw string, atOnce int) *shop {
	return &shop{
		flaw: flaw, atOnce: atOnce, keys: map[string]*entry{}, orders: map[string][]string{},
		arrived: map[string]int{}, all: map[string]chan struct{}{}, taken: make(chan struct{}, 1000),
	}
}

// Write is told which trial begins.
func (s *shop) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trial = strings.TrimSpace(string(p))
	s.taken = make(chan struct{}, 1000)
	return len(p), nil
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		s.list(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil && s.flaw != halfBody {
		panic(http.ErrAbortHandler)
	}
	keys := r.Header.Values("Idempotency-Key")
	key := r.Header.Get("Idempotency-Key")
	switch {
	case s.flaw == strict:
		refuse(w, http.StatusForbidden, "not for you")
	case len(keys) == 0 && s.flaw != noKey && s.flaw != naive, len(keys) > 1 && s.flaw != firstKey && s.flaw != naive:
		refuse(w, http.StatusBadRequest, "one key, please")
	case len(key) > 100 && s.flaw != longKeys && s.flaw != naive:
		refuse(w, http.StatusUnprocessableEntity, "the key is too long")
	default:
		s.order(w, key, string(body))
		s.cutOff()
	}
}

// cutOff ends the connection of two requests under the load of a restart, after
// their work.
func (s *shop) cutOff() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trial == "restart-under-load" && len(s.taken) > 0 && s.cut < 2 {
		s.cut++
		panic(http.ErrAbortHandler)
	}
}

func (s *shop) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	orders := append([]string{}, s.orders[r.URL.Query().Get("order")]...)
	json.NewEncoder(w).Encode(map[string]any{"orders": orders}) //nolint:errcheck // the client sees it
}

func refuse(w http.ResponseWriter, status int, why string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":%q}`, why) //nolint:errcheck // the client sees it
}

// order looks at the key, works, and answers, all at once; some flaws let
// others in between.
func (s *shop) order(w http.ResponseWriter, key, body string) {
	if s.flaw == bodyIsKey {
		key = body
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.keys[key]
	if known != nil && s.flaw != naive && key != "" && (s.flaw != otherWork || known.body == body) {
		s.repeat(w, known, body)
		return
	}
	made := s.check(body)
	if made.status >= 400 && s.flaw != keepsRefusal {
		refuse(w, made.status, made.answer)
		return
	}
	if strings.HasPrefix(s.trial, "race") && (s.flaw == insertLast || strings.Contains(s.flaw, "loses a race")) {
		s.wait(key, made)
	}
	if made.status < 400 {
		s.work(made)
	}
	made.pending = false
	s.keys[key] = made
	if s.flaw == marksAll {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	w.WriteHeader(made.status)
	io.WriteString(w, made.answer) //nolint:errcheck // the client sees it
}

// wait lets the other requests of a race in. To insertLast they look new.
func (s *shop) wait(key string, made *entry) {
	if s.flaw != insertLast {
		made.pending = true
		s.keys[key] = made
	}
	all := s.arrive(key)
	s.mu.Unlock()
	<-all
	s.mu.Lock()
}

// arrive counts a request of a race.
func (s *shop) arrive(key string) chan struct{} {
	if s.all[key] == nil {
		s.all[key] = make(chan struct{})
	}
	if s.arrived[key]++; s.arrived[key] == s.atOnce {
		close(s.all[key])
	}
	return s.all[key]
}

func (s *shop) repeat(w http.ResponseWriter, known *entry, body string) {
	switch {
	case known.pending:
		s.arrive(keyOf(s.keys, known))
		status := http.StatusConflict
		if s.flaw == failLoser {
			status = http.StatusInternalServerError
		}
		if s.flaw == busyLoser {
			w.Header().Set("Retry-After", "1")
		}
		refuse(w, status, "UNIQUE constraint failed")
	case known.body != body && s.flaw != anyBody:
		refuse(w, http.StatusUnprocessableEntity, "the key was used with another body")
	default:
		if s.flaw != unmarked {
			w.Header().Set("Idempotency-Replayed", "true")
		}
		w.WriteHeader(known.status)
		io.WriteString(w, known.answer) //nolint:errcheck // the client sees it
	}
}

func keyOf(keys map[string]*entry, e *entry) string {
	for key, known := range keys {
		if known == e {
			return key
		}
	}
	return ""
}

// check reads an order.
func (s *shop) check(body string) *entry {
	var order struct {
		Order  string `json:"order"`
		Amount int    `json:"amount"`
	}
	err := json.Unmarshal([]byte(body), &order)
	switch {
	case err != nil && s.flaw != halfBody:
		return &entry{body: body, status: http.StatusBadRequest, answer: "no JSON"}
	case order.Amount < 0:
		return &entry{body: body, status: http.StatusUnprocessableEntity, answer: "the amount is negative"}
	}
	return &entry{body: body, status: http.StatusCreated, answer: order.Order}
}

// work makes the order whose name is in the answer.
func (s *shop) work(made *entry) {
	s.made++
	id := fmt.Sprintf("o%d", s.made)
	s.orders[made.answer] = append(s.orders[made.answer], id)
	made.answer = fmt.Sprintf(`{"id":%q,"order":%q}`, id, made.answer)
	s.taken <- struct{}{}
}

// restart forgets what a process would, under load once it has had all orders.
func (s *shop) restart(ctx context.Context) error {
	s.mu.Lock()
	taken, wait := s.taken, 0
	if s.trial == "restart-under-load" {
		wait = 16
	}
	s.mu.Unlock()
	for range wait {
		select {
		case <-taken:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flaw == forgetful {
		s.keys = map[string]*entry{}
	}
	return nil
}
