package main

import (
	"compress/gzip"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// The shop's own rules, in units of a millionth of a credit.
const (
	// welcome is what a customer gets before the first order.
	welcome = 200_000_000
	// perItem is the price of an article in the cart.
	perItem = 9_950_000
	// perMail is what it costs to have a letter of thanks written, which every
	// second order gets.
	perMail = 500_000
)

// purchase is the name of the event that is an order.
const purchase = "purchase"

// shop is what the file says, and what has to come of it.
type shop struct {
	events []actionpulse.Event
	// names counts the events by name.
	names map[string]int64
	// customers are those who buy, in the order of the file, each with their
	// orders.
	customers []customer
	// orders and mails are how many there are.
	orders, mails int
}

// customer buys something.
type customer struct {
	id     string
	orders []order
}

// order is paid once, and some get a letter.
type order struct {
	id     string
	amount credit.Amount
	mail   bool
}

// left is what a customer has at the end, if everything was done once.
func (c *customer) left() credit.Amount {
	left := credit.Amount(welcome)
	for _, o := range c.orders {
		left -= o.amount
		if o.mail {
			left -= perMail
		}
	}
	return left
}

// row is a line of the file.
type row struct{ user, session, event, at, platform, channel, cohort, lifecycle string }

// readShop reads the first lines of the file, all of them if limit is 0.
func readShop(path string, limit int) (*shop, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the shop's events: %w", err)
	}
	rows, err := readRows(file, limit)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return newShop(rows)
}

func readRows(r io.Reader, limit int) (rows []row, err error) {
	unpacked, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	lines := csv.NewReader(unpacked)
	lines.FieldsPerRecord = 8
	if _, err := lines.Read(); err != nil {
		return nil, err
	}
	for limit == 0 || len(rows) < limit {
		l, err := lines.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{l[0], l[1], l[2], l[3], l[4], l[5], l[6], l[7]})
	}
	return rows, nil
}

func newShop(rows []row) (*shop, error) {
	s := &shop{names: map[string]int64{}}
	inCart := map[string]int64{}
	for i, r := range rows {
		at, err := time.Parse(time.DateTime, r.at)
		if err != nil {
			return nil, err
		}
		s.events = append(s.events, actionpulse.Event{
			ID: eventID(i), Name: r.event, UserID: r.user, SessionID: r.session, Time: at,
			Properties: map[string]any{"platform": r.platform, "acquisition_channel": r.channel, "user_cohort": r.cohort, "user_lifecycle": r.lifecycle},
		})
		s.names[r.event]++
		switch r.event {
		case "add_to_cart":
			inCart[r.session]++
		case purchase:
			s.buy(r, max(1, inCart[r.session]))
		}
	}
	return s, nil
}

// eventID is the id of a line, made from its place in the file: whoever sends
// the file again sends the same ids, and lines that are alike keep ids of their
// own.
func eventID(line int) string {
	var place [8]byte
	binary.BigEndian.PutUint64(place[:], uint64(line))
	return uuid.NewSHA1(uuid.NameSpaceURL, append([]byte("examples/shop/ecom.csv.gz#"), place[:]...)).String()
}

// buy notes an order of so many articles. Every second gets a letter.
func (s *shop) buy(r row, articles int64) {
	at := slices.IndexFunc(s.customers, func(c customer) bool { return c.id == r.user })
	if at < 0 {
		at = len(s.customers)
		s.customers = append(s.customers, customer{id: r.user})
	}
	o := order{id: fmt.Sprintf("order-%d", s.orders+1), amount: credit.Amount(articles * perItem), mail: s.orders%2 == 0}
	s.customers[at].orders = append(s.customers[at].orders, o)
	s.orders++
	if o.mail {
		s.mails++
	}
}
