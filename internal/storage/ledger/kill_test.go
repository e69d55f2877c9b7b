package ledger_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/storage/ledger"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/storagetest"
)

// What a child is told by its environment.
const (
	childPath    = "LEDGER_TEST_PATH"
	childURL     = "LEDGER_TEST_URL"
	childProject = "LEDGER_TEST_PROJECT"
	childRun     = "LEDGER_TEST_RUN"
)

const (
	childWorkers   = 16
	childCustomers = 3
)

// wish is the n-th movement that a worker of a run asks for. Charges take more
// than topups give, so that many are refused.
func wish(run string, worker, n int) order {
	o := order{
		kind: credit.Topup, key: fmt.Sprintf("%s/%d/%d", run, worker, n), customer: fmt.Sprint("c", (worker+n)%childCustomers),
		amount: credit.Amount(1 + n%5),
	}
	switch n % 3 {
	case 1:
		o.kind, o.amount = credit.Charge, 2*o.amount
	case 2:
		o.kind, o.amount = credit.Adjust, 2-o.amount
	}
	if o.amount == 0 {
		o.amount = -1
	}
	return o
}

// child moves credits until it is killed, and says of each movement what it
// heard.
func child() int {
	db, err := sqldb.Open(context.Background(), sqldb.Options{Path: os.Getenv(childPath), URL: os.Getenv(childURL)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	b := &bench{db: db, project: os.Getenv(childProject), now: time.Now}
	b.service = newService(db, 4)
	var all sync.WaitGroup
	for worker := range childWorkers {
		all.Go(func() {
			for n := 0; ; n++ {
				o := wish(os.Getenv(childRun), worker, n)
				m, err := b.ask(context.Background(), o)
				switch {
				case err == nil:
					fmt.Printf("done %d %d %s\n", worker, n, base64.StdEncoding.EncodeToString(m.Answer.Body))
				case isRefusal(err):
					fmt.Printf("refused %d %d -\n", worker, n)
				default:
					fmt.Fprintln(os.Stderr, err)
				}
			}
		})
	}
	all.Wait()
	return 0
}

func isRefusal(err error) bool {
	code := fault.CodeOf(err)
	return code == api.CodeInsufficientCredits || code == api.CodeCustomerNotFound
}

func newService(db *sqldb.DB, workers int) *credit.Service {
	return credit.NewService(credit.Params{
		Store: ledger.New(db), Workers: workers, KeepAnswers: time.Hour, Guard: func() error { return nil },
		Tally: idempotency.NewTally(db.Keys().AddCounts), Clock: time.Now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
	})
}

// ask asks the service for an order.
func (b *bench) ask(ctx context.Context, o order) (credit.Moved, error) {
	return b.service.Move(ctx, credit.MoveParams{
		ProjectID: b.project, Customer: o.customer, Kind: o.kind, Key: o.key,
		Body: fmt.Appendf(nil, `{"credit_type":"main","amount":%q}`, o.amount),
		Decode: func() (credit.Move, error) {
			return credit.Move{CreditType: "main", Amount: o.amount, Grant: credit.Grant{Priority: credit.DefaultPriority}}, nil
		},
		Render: func(m *credit.Movement, balance credit.Balance) ([]byte, error) {
			return []byte(m.ID + " " + balance.Posted.String()), nil
		},
	})
}

// victims are what children were killed at and heard.
type victims struct {
	options sqldb.Options
	project string
	// heard is what each key heard: the answer, or "" for a refusal.
	heard map[string]string
	// asked are all orders that may have been asked for.
	asked map[string]order
}

// run lets a child work until it dies at a crash point, or is killed after it
// has said a number of things.
func (v *victims) run(t *testing.T, binary, run, point string, lines int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary)
	cmd.Env = append(os.Environ(), childPath+"="+v.options.Path, childURL+"="+v.options.URL, childProject+"="+v.project, childRun+"="+run,
		"ACTIONPULSE_CRASH_AT="+point)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, latest := 0, map[int]int{}
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		v.listen(t, run, scanner.Text(), latest)
		if said++; said == lines {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); ctx.Err() != nil || !strings.Contains(fmt.Sprint(err), "killed") {
		t.Fatalf("the child ended with %v", err)
	}
	for worker := range childWorkers { // each had one more under way
		o := wish(run, worker, latest[worker])
		v.asked[o.key] = o
	}
}

// listen notes what a child has heard; a line that was cut off was not heard.
func (v *victims) listen(t *testing.T, run, line string, latest map[int]int) {
	t.Helper()
	var verdict, answer string
	var worker, n int
	if _, err := fmt.Sscan(line, &verdict, &worker, &n, &answer); err != nil {
		t.Errorf("a child said %q", line)
		return
	}
	o := wish(run, worker, n)
	latest[worker] = n + 1
	v.asked[o.key] = o
	v.heard[o.key] = ""
	if verdict == "done" {
		body, err := base64.StdEncoding.DecodeString(answer)
		if err != nil {
			t.Error(err)
		}
		v.heard[o.key] = string(body)
	}
}

// crashBinary builds this test with points at which it dies.
func crashBinary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-tags", "crashpoints", "-o", path, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the child: %v\n%s", err, out)
	}
	return path
}

// A process that moves credits is killed at every point and at moments of no
// choice, again and again. Afterwards every request is repeated: what was
// acknowledged is there once and is answered as before, byte for byte; what was
// refused is not there; and the balances are the sums of their entries.
func TestKilled(t *testing.T) {
	t.Parallel()
	binary := crashBinary(t)
	for name, open := range map[string]storagetest.OpenFunc{"SQLite": storagetest.SQLite, "PostgreSQL": storagetest.PostgreSQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVictims(t, open(t, storagetest.Accounts))
			for _, point := range []string{"movements.claimed", "movements.written", "movements.committed"} {
				for _, passes := range []int{1, draw(t, 2, 30)} {
					v.run(t, binary, fmt.Sprint(point, passes), fmt.Sprint(point, ":", passes), -1)
				}
			}
			for i := range 4 {
				v.run(t, binary, fmt.Sprint("random", i), "", draw(t, 1, 300))
			}
			v.check(t)
		})
	}
}

// draw draws a number.
func draw(t *testing.T, from, to int64) int {
	t.Helper()
	n, err := rand.Int(rand.Reader, big.NewInt(to-from+1))
	if err != nil {
		t.Fatal(err)
	}
	return int(n.Int64() + from)
}

func newVictims(t *testing.T, o sqldb.Options) *victims {
	t.Helper()
	return &victims{options: o, project: storagetest.SetupOf(t, o).Project.ID, heard: map[string]string{}, asked: map[string]order{}}
}

// check compares what is there with what was heard, and repeats everything.
func (v *victims) check(t *testing.T) {
	t.Helper()
	db, err := sqldb.Open(t.Context(), v.options)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	b := &bench{db: db, project: v.project, now: time.Now, service: newService(db, 4)}
	defer b.service.Close()
	b.audit(t)
	done := 0
	for key, answer := range v.heard {
		n := b.count(t, "movements WHERE work_key = $1", key)
		switch {
		case answer != "" && n != 1:
			t.Errorf("%s was acknowledged and has %d movements", key, n)
		case answer == "" && n != 0:
			t.Errorf("%s was refused and has %d movements", key, n)
		}
		done += n
	}
	var all sync.WaitGroup
	limit := make(chan struct{}, 64)
	for key, o := range v.asked {
		limit <- struct{}{}
		all.Go(func() {
			defer func() { <-limit }()
			m, err := b.ask(t.Context(), o)
			answer, heard := v.heard[key]
			switch {
			case answer != "" && (err != nil || !m.Replayed || string(m.Answer.Body) != answer):
				t.Errorf("%s heard %q, and its repeat %+v %v", key, answer, m, err)
			case heard && answer == "" && m.Replayed:
				t.Errorf("%s was refused, and its repeat was a replay", key)
			case err != nil && !isRefusal(err):
				t.Errorf("%s: %v", key, err)
			}
		})
	}
	all.Wait()
	b.audit(t)
	t.Logf("%d requests, %d heard, %d done before the repeats", len(v.asked), len(v.heard), done)
	if done == 0 || len(v.heard) == done || len(v.asked) == len(v.heard) {
		t.Error("the children did not do all that they were to do")
	}
}
