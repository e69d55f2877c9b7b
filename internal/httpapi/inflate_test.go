package httpapi

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/actionpulse/actionpulse/api"
)

func gzipOf(t testing.TB, text []byte) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// zstdOf streams, so that the frame does not say how long it is.
func zstdOf(t testing.TB, text []byte, options ...zstd.EOption) string {
	t.Helper()
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, append(options, zstd.WithEncoderConcurrency(1))...)
	if err != nil {
		t.Fatal(err)
	}
	for rest := text; len(rest) > 0; rest = rest[min(1000, len(rest)):] {
		if _, err := w.Write(rest[:min(1000, len(rest))]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// zstdAll says in its frame how long it is.
func zstdAll(t testing.TB, text []byte) string {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	return string(w.EncodeAll(text, nil))
}

// padded is a JSON object of n bytes.
func padded(n int) []byte {
	return []byte(`{"a":"` + strings.Repeat("x", n-len(`{"a":""}`)) + `"}`)
}

func TestCodedBodies(t *testing.T) {
	fits, over := padded(trackLimit), padded(trackLimit+1)
	noise := make([]byte, trackLimit-2)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(noise)
	for i := range noise {
		noise[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"[noise[i]&63]
	}
	noise = append(append([]byte{'"'}, noise...), '"')
	two := gzipOf(t, fits[:1000]) + gzipOf(t, fits[1000:])
	for _, c := range []struct {
		name, coding, body string
		code               api.Code
		want               []byte
	}{
		{"gzip", "gzip", gzipOf(t, fits), "", fits},
		{"x-gzip, upper case", "X-GZIP", gzipOf(t, fits), "", fits},
		{"gzip in two members", "gzip", two, "", fits},
		{"gzip of noise", "gzip", gzipOf(t, noise), "", noise},
		{"gzip over the limit", "gzip", gzipOf(t, over), api.CodePayloadTooLarge, nil},
		{"gzip cut short", "gzip", gzipOf(t, fits)[:500], api.CodeInvalidJSON, nil},
		{"gzip with something after it", "gzip", gzipOf(t, fits) + "x", api.CodeInvalidJSON, nil},
		{"gzip with a wrong checksum", "gzip", strings.Replace(gzipOf(t, []byte(`{"a":1}`)), "\x07\x00\x00\x00", "\x08\x00\x00\x00", 1), api.CodeInvalidJSON, nil},
		{"nothing as gzip", "gzip", "", api.CodeInvalidJSON, nil},
		{"zstd", "zstd", zstdOf(t, fits), "", fits},
		{"zstd that says its length", "zstd", zstdAll(t, fits), "", fits},
		{"zstd in two frames", "zstd", zstdAll(t, fits[:700000]) + zstdOf(t, fits[700000:]), "", fits},
		{"zstd of noise", "zstd", zstdAll(t, noise), "", noise},
		{"zstd with the largest window", "zstd", zstdOf(t, fits, zstd.WithWindowSize(8<<20)), "", fits},
		{"zstd with a larger window", "zstd", zstdOf(t, fits, zstd.WithWindowSize(16<<20)), api.CodeUnsupportedMediaType, nil},
		{"zstd over the limit", "zstd", zstdOf(t, over), api.CodePayloadTooLarge, nil},
		{"zstd over the limit that says so", "zstd", zstdAll(t, over), api.CodePayloadTooLarge, nil},
		{"zstd far over the limit that says so", "zstd", zstdAll(t, padded(9<<20)), api.CodePayloadTooLarge, nil},
		{"zstd cut short", "zstd", zstdOf(t, fits)[:30], api.CodeInvalidJSON, nil},
		{"zstd with something after it", "zstd", zstdOf(t, fits) + "garbage", api.CodeInvalidJSON, nil},
		{"gzip as zstd", "zstd", gzipOf(t, fits), api.CodeInvalidJSON, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := setup(t)
			r := b.do(t, request{path: "/v1/track", secret: "server", body: c.body, headers: map[string]string{"Content-Encoding": c.coding}})
			taken := b.intake.taken()
			if c.code != "" {
				wantRefusal(t, r, c.code)
				if len(taken) != 0 {
					t.Error("a refused body reached intake")
				}
			} else if r.status != 202 || len(taken) != 1 || taken[0].body != string(c.want) {
				t.Errorf("%d %s; %d requests reached intake", r.status, r.body, len(taken))
			}
			if held := b.service.bodies.held.Load(); held != 0 {
				t.Errorf("%d bytes are still held", held)
			}
		})
	}
}

// TestBombs sends bodies that grow a thousandfold and more, and checks that
// only the limit is ever held.
func TestBombs(t *testing.T) {
	b := setup(t)
	zeros := make([]byte, 16<<20)
	empty := strings.Repeat(gzipOf(t, nil), 60_000)
	for name, q := range map[string]request{
		"gzip":         {body: gzipOf(t, zeros), headers: map[string]string{"Content-Encoding": "gzip"}},
		"zstd":         {body: zstdOf(t, zeros), headers: map[string]string{"Content-Encoding": "zstd"}},
		"empty blocks": {body: empty, headers: map[string]string{"Content-Encoding": "gzip"}},
	} {
		q.path, q.secret = "/v1/track", "server"
		e := wantRefusal(t, b.do(t, q), api.CodePayloadTooLarge)
		if e.Details["limit_bytes"] != float64(trackLimit) {
			t.Errorf("%s: limit_bytes is %v", name, e.Details["limit_bytes"])
		}
	}
	buf := b.service.bodies.get()
	if err := b.service.inflaters.inflate(buf, gzipped, []byte(gzipOf(t, zeros)), trackLimit); !errors.Is(err, errTooLarge) {
		t.Errorf("inflate: %v", err)
	}
	if cap(buf.data) > trackLimit+1 || buf.held > trackLimit+1 {
		t.Errorf("%d bytes in memory, %d held", cap(buf.data), buf.held)
	}
	b.service.bodies.put(buf)
}

func FuzzInflate(f *testing.F) {
	f.Add(true, []byte(gzipOf(f, []byte(`{"a":1}`))), 100)
	f.Add(false, []byte(zstdOf(f, []byte(`{"a":1}`))), 100)
	f.Add(false, []byte(zstdAll(f, padded(5000))), 100)
	all, err := newInflaters()
	if err != nil {
		f.Fatal(err)
	}
	bodies := newBodies(1 << 30)
	f.Fuzz(func(t *testing.T, isGzip bool, coded []byte, limit int) {
		if limit < 1 || limit > 1<<20 {
			return
		}
		coding := zstandard
		if isGzip {
			coding = gzipped
		}
		buf := bodies.get()
		defer bodies.put(buf)
		if err := all.inflate(buf, coding, coded, limit); err == nil && len(buf.data) > limit {
			t.Errorf("%d bytes came of it, limit %d", len(buf.data), limit)
		}
	})
}

func FuzzFill(f *testing.F) {
	f.Add([]byte("abc"), 3, int64(3))
	f.Add([]byte("abcd"), 3, int64(-1))
	bodies := newBodies(1 << 30)
	f.Fuzz(func(t *testing.T, text []byte, limit int, hint int64) {
		if limit < 1 || limit > 1<<20 {
			return
		}
		buf := bodies.get()
		defer bodies.put(buf)
		err := buf.fill(bytes.NewReader(text), limit, hint)
		if (err == nil) != (len(text) <= limit) || (err == nil && !bytes.Equal(buf.data, text)) {
			t.Errorf("%d bytes, limit %d: %v", len(text), limit, err)
		}
	})
}
