package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
)

// wrong counts answers that should not be, in rounds of one key each.
type wrong struct {
	rounds int
	// doubled: the work of one key was done twice.
	doubled int
	// denied: an equal request was refused although the work had succeeded.
	denied int
	// confused: another body got the first one's answer, or ran.
	confused int
	// forgotten: after a restart a repeat was not answered as one.
	forgotten int
}

const (
	together = 8
	amount   = 100
)

// client sends requests over many connections.
type client struct {
	http *http.Client
	url  string
}

func newClient(address string) client {
	return client{
		http: &http.Client{Transport: &http.Transport{MaxIdleConns: 256, MaxIdleConnsPerHost: 256}},
		url:  "http://" + address + "/",
	}
}

func (c client) send(ctx context.Context, key string, account, amount int64) (int, error) {
	body := fmt.Appendf(nil, `{"account":%d,"amount":%d}`, account, amount)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set(idempotency.Header, key)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, errors.Join(err, response.Body.Close())
}

// countWrong gives each of many accounts exactly the price of one unit of
// work, and asks for it eight times at once with one key; then with the same
// key and another price; then, after a restart, once more.
func countWrong(ctx context.Context, f form, db *database, rounds int) (w wrong, err error) {
	w.rounds = rounds
	const first = 1_000_000
	if err := f.fund(ctx, db, first, first+int64(rounds), amount); err != nil {
		return w, err
	}
	address, stop, err := f.serve(db)
	if err != nil {
		return w, err
	}
	c := newClient(address)
	for i := range int64(rounds) {
		if err := w.round(ctx, c, first+i); err != nil {
			stop()
			return w, err
		}
	}
	stop()
	c.http.CloseIdleConnections()
	if address, stop, err = f.serve(db); err != nil {
		return w, err
	}
	defer stop()
	c = newClient(address)
	for i := range int64(rounds) {
		status, err := c.send(ctx, keyOf(first+i), first+i, amount)
		if err != nil {
			return w, err
		}
		if status != http.StatusOK {
			w.forgotten++
		}
		n, err := f.entries(ctx, db, first+i)
		if err != nil {
			return w, err
		}
		if n > 1 {
			w.doubled++
		}
	}
	return w, nil
}

func keyOf(account int64) string { return fmt.Sprintf("order-%d", account) }

func (w *wrong) round(ctx context.Context, c client, account int64) error {
	var all sync.WaitGroup
	var denied atomic.Int64
	errs := make(chan error, together)
	start := make(chan struct{})
	for range together {
		all.Go(func() {
			<-start
			status, err := c.send(ctx, keyOf(account), account, amount)
			if err != nil {
				errs <- err
			}
			if status != http.StatusOK {
				denied.Add(1)
			}
		})
	}
	close(start)
	all.Wait()
	close(errs)
	if err := <-errs; err != nil {
		return err
	}
	w.denied += int(denied.Load())
	status, err := c.send(ctx, keyOf(account), account, amount/2)
	if err != nil {
		return err
	}
	if status != http.StatusConflict {
		w.confused++
	}
	return nil
}

// connections is how many requests are under way while speed is measured.
const connections = 64

var runs atomic.Int64

// speed measures new units of work a second, then replays of them.
func speed(ctx context.Context, f form, db *database, span time.Duration) (fresh, replays float64, err error) {
	const accounts = 10_000
	if err := f.fund(ctx, db, 0, accounts, 1<<40); err != nil {
		return 0, 0, err
	}
	address, stop, err := f.serve(db)
	if err != nil {
		return 0, 0, err
	}
	defer stop()
	c := newClient(address)
	defer c.http.CloseIdleConnections()
	prefix := fmt.Sprintf("run-%d-", runs.Add(1))
	var done atomic.Int64
	fresh, err = during(ctx, span, func(n int64) error {
		status, err := c.send(ctx, fmt.Sprintf("%s%d", prefix, n), n%accounts, 1)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("answered %d", status)
		}
		if err == nil {
			done.Add(1)
		}
		return err
	})
	if err != nil || f.bare {
		return fresh, 0, err
	}
	known := done.Load()
	replays, err = during(ctx, span, func(n int64) error {
		n %= known
		status, err := c.send(ctx, fmt.Sprintf("%s%d", prefix, n), n%accounts, 1)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("a replay was answered %d", status)
		}
		return err
	})
	return fresh, replays, err
}

// during calls do from all connections for a time, with numbers from 0, and
// returns how many calls a second there were.
func during(ctx context.Context, span time.Duration, do func(n int64) error) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, span)
	defer cancel()
	var next, finished atomic.Int64
	var all sync.WaitGroup
	errs := make(chan error, connections)
	began := time.Now()
	for range connections {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := do(next.Add(1) - 1); err != nil {
					errs <- err
					return
				}
				finished.Add(1)
			}
		})
	}
	all.Wait()
	close(errs)
	return float64(finished.Load()) / time.Since(began).Seconds(), <-errs
}
