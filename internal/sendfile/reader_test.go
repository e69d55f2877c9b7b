package sendfile_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/actionpulse/actionpulse/internal/sendfile"
)

// readAll reads an input to its end and returns its items and the error that
// ended it, nil for the end of the input.
func readAll(in io.Reader, o sendfile.Options) ([]sendfile.Item, error) {
	r, err := sendfile.NewReader("in", in, o)
	if err != nil {
		return nil, err
	}
	var items []sendfile.Item
	for {
		item, err := r.Next()
		if errors.Is(err, io.EOF) {
			return items, nil
		}
		if err != nil {
			return items, err
		}
		items = append(items, item)
	}
}

func mustRead(t *testing.T, text string, o sendfile.Options) []sendfile.Item {
	t.Helper()
	items, err := readAll(strings.NewReader(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return items
}

func zip(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// without returns an item's JSON with its id replaced by "*".
func without(item sendfile.Item) string {
	if item.Code != "" {
		return fmt.Sprintf("%d %s: %s", item.Line, item.Code, item.Message)
	}
	return fmt.Sprintf("%d %s", item.Line, strings.Replace(string(item.JSON), item.EventID, "*", 1))
}

func checkItems(t *testing.T, items []sendfile.Item, want ...string) {
	t.Helper()
	if len(items) != len(want) {
		t.Errorf("%d items, want %d", len(items), len(want))
	}
	for i := range min(len(items), len(want)) {
		if got := without(items[i]); got != want[i] {
			t.Errorf("item %d\n got %s\nwant %s", i, got, want[i])
		}
	}
}

func TestCSVByDefaultNames(t *testing.T) {
	t.Parallel()
	items := mustRead(t, "event_id,event,user_id,anon_id,session_id,ts,note,,big\n"+
		"0188b1f0-0000-7000-8000-000000000001,home,u1,a1,s1,1710325274000,\"a,\"\"b\"\"\nc\",x,\n"+
		",,,,,,,,\n", sendfile.Options{})
	checkItems(t, items,
		`2 {"event_id":"*","event":"home","anon_id":"a1","user_id":"u1","session_id":"s1","ts":1710325274000,"properties":{"note":"a,\"b\"\nc","column_8":"x"}}`,
		`4 {"event_id":"*"}`)
	if items[0].EventID != "0188b1f0-0000-7000-8000-000000000001" {
		t.Errorf("the column's id was not kept: %s", items[0].EventID)
	}
}

func TestCSVByMapping(t *testing.T) {
	t.Parallel()
	o := sendfile.Options{Mapping: sendfile.Mapping{Event: "concept:name", User: "case:concept:name", TS: "time:timestamp"}}
	checkItems(t, mustRead(t, "case:concept:name,concept:name,time:timestamp,case:deadline,event\r\n"+
		"case-1,Confirmation,2011-10-11 13:45:40.276000+02:00,,x\r\n"+
		"case-1,Confirmation,2011-12-06 13:41:31.788000+01:00,2012-01-01,\r\n", o),
		`2 {"event_id":"*","event":"Confirmation","user_id":"case-1","ts":"2011-10-11T11:45:40.276Z","properties":{"event":"x"}}`,
		`3 {"event_id":"*","event":"Confirmation","user_id":"case-1","ts":"2011-12-06T12:41:31.788Z","properties":{"case:deadline":"2012-01-01"}}`)
	o.Mapping.Event, o.Mapping.EventName, o.Mapping.Session = "", "Step \"1\"", "case:concept:name"
	checkItems(t, mustRead(t, "case:concept:name,time:timestamp\nc,soon\n", o),
		`2 {"event_id":"*","event":"Step \"1\"","user_id":"c","session_id":"c","ts":"soon"}`)
}

func TestCSVRejectsLines(t *testing.T) {
	t.Parallel()
	checkItems(t, mustRead(t, "event,user_id,p\na,u\na,u,p,q\na,u,\xff\n\na,u,ok\na,u,"+strings.Repeat("x", sendfile.MaxItem)+"\n", sendfile.Options{}),
		"2 invalid_event: the line has 2 cells where the header has 3",
		"3 invalid_event: the line has 4 cells where the header has 3",
		"4 invalid_event: cell 3 is not UTF-8",
		`6 {"event_id":"*","event":"a","user_id":"u","properties":{"p":"ok"}}`,
		"7 event_too_large: the item has 65635 bytes, the limit is 65536")
}

func TestJSONLines(t *testing.T) {
	t.Parallel()
	const own = `"0188B1F0-0000-7000-8000-000000000001"`
	items := mustRead(t, "\n {\"event\": \"a\", \"n\": 1.50, \"s\": \"\\u0041\"}\r\n"+
		`{"event": "b", "event_id": `+own+"}\n"+
		`{"event": "c", "event_id": null, "x": [null]}`+"\n"+
		`{"event_id": ""}`+"\n{}\n[1]\n"+`{"event": `+"\n"+`{"a":"`+"\xff"+`"}`+"\n"+`{"event_id":42}`, sendfile.Options{})
	checkItems(t, items[:3],
		`2 {"event_id":"*","event":"a","n":1.50,"s":"\u0041"}`,
		`3 {"event":"b","event_id":"*"}`,
		`4 {"event":"c","event_id":"*","x":[null]}`)
	if items[1].EventID != strings.Trim(own, `"`) {
		t.Errorf("its own id was not kept: %s", items[1].EventID)
	}
	for i, want := range []string{`{"event_id":""}`, "", "[1]", "", "", `{"event_id":42}`} {
		if got := items[3+i]; want != "" && string(got.JSON) != want {
			t.Errorf("line %d: %s, want %s", got.Line, got.JSON, want)
		}
	}
	if items[4].EventID == "" || items[5].EventID != "" || items[8].EventID != "" {
		t.Errorf("ids %q, %q, %q", items[4].EventID, items[5].EventID, items[8].EventID)
	}
	for _, i := range []int{6, 7} {
		if items[i].Code != "invalid_event" || !strings.HasPrefix(items[i].Message, "the line is not JSON in UTF-8") {
			t.Errorf("line %d: %+v", items[i].Line, items[i])
		}
	}
}

func TestNewReaderRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text    string
		mapping sendfile.Mapping
		want    string
	}{
		"no such column":      {"event,user_id\n", sendfile.Mapping{TS: "when"}, "no column named when (--ts)"},
		"no event":            {"name,user_id\n", sendfile.Mapping{}, "no column named event"},
		"no person":           {"event,user\n", sendfile.Mapping{}, "no column named user_id or anon_id"},
		"column twice":        {"event,user_id,a,a\n", sendfile.Mapping{}, "two columns are named a"},
		"mapped column twice": {"event,user_id,user_id\n", sendfile.Mapping{}, "two columns are named user_id"},
		"array":               {" [{}]", sendfile.Mapping{}, "one object a line"},
		"JSON with mapping":   {"{}", sendfile.Mapping{Event: "e"}, "a JSON line is an item already"},
	} {
		_, err := readAll(strings.NewReader(c.text), sendfile.Options{Mapping: c.mapping})
		setup, ok := errors.AsType[*sendfile.SetupError](err)
		if !ok || !strings.Contains(setup.Error(), c.want) || setup.Source != "in" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadingFails(t *testing.T) {
	t.Parallel()
	const good = "event,user_id\na,u\n"
	zipped := zip(t, good)
	broken := errors.New("the disk is broken")
	for name, c := range map[string]struct {
		in    io.Reader
		items int
		want  string
	}{
		"UTF-16":         {strings.NewReader("\xff\xfee\x00v\x00"), 0, "UTF-16"},
		"bare quote":     {strings.NewReader(good + "a,5\" screen\n"), 1, "in:3: the CSV is broken at line 3, column 4"},
		"open quote":     {strings.NewReader(good + "b,u\n\"c,u\nd,u\n"), 2, "in:4: "},
		"gzip cut short": {strings.NewReader(zipped[:len(zipped)-4]), 1, "unexpected EOF"},
		"not gzip":       {strings.NewReader("\x1f\x8bxx"), 0, "reading gzip"},
		"disk":           {io.MultiReader(strings.NewReader(good+"torn,"), iotest.ErrReader(broken)), 1, broken.Error()},
		"endless quote":  {io.MultiReader(strings.NewReader(good+"\""), endless{}), 1, "is a quote never closed?"},
		"endless line":   {io.MultiReader(strings.NewReader("{}\n{"), endless{}), 1, "a record is longer"},
	} {
		items, err := readAll(c.in, sendfile.Options{})
		if _, ok := errors.AsType[*sendfile.InputError](err); !ok || !strings.Contains(err.Error(), c.want) || len(items) != c.items {
			t.Errorf("%s: %d items, %v", name, len(items), err)
		}
	}
}

// endless never ends a line.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestEmptyInput(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n\n", "\xef\xbb\xbf", "event,user_id\n", zip(t, "")} {
		if items, err := readAll(strings.NewReader(text), sendfile.Options{}); err != nil || len(items) != 0 {
			t.Errorf("%q: %d items, %v", text, len(items), err)
		}
	}
}
