package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

// parse reads a command line as the binary does.
func parse(t *testing.T, args ...string) (*Config, map[string]Setting, error) {
	t.Helper()
	var c struct {
		Serve struct {
			Config Config `embed:""`
		} `cmd:""`
	}
	parser, err := kong.New(&c, kong.DefaultEnvars(EnvPrefix))
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := parser.Parse(append([]string{"serve"}, args...))
	if err != nil {
		return nil, nil, err
	}
	return &c.Serve.Config, c.Serve.Config.Report(ctx), c.Serve.Config.Validate()
}

func writeFile(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaultsAreValid(t *testing.T) {
	c, report, err := parse(t, "--data", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if c.Intake.Window != 48*time.Hour || c.Listen != "127.0.0.1:8080" || c.Storage.MinFreeBytes != 2e9 ||
		c.Rate.RequestsPerSecond != 5000 || c.Rate.Burst != 10000 || c.Materializer.MaxDelay != 500*time.Millisecond {
		t.Errorf("defaults: %+v", c)
	}
	if len(report) != 40 {
		t.Errorf("%d settings reported: %v", len(report), report)
	}
}

func TestOrderOfPrecedence(t *testing.T) {
	dir := t.TempDir()
	file := writeFile(t, filepath.Join(dir, FileName), `{"intake": {"window": "24h", "body_timeout": "9s"},
		"materializer": {"max_rows": 1000000, "max_delay": "100ms"}, "trusted_proxies": ["10.0.0.0/8", "fd00::/8"]}`)
	t.Setenv("ACTIONPULSE_INTAKE_WINDOW", "12h")
	t.Setenv("ACTIONPULSE_INTAKE_BODY_TIMEOUT", "8s")
	t.Setenv("ACTIONPULSE_DATA", dir)
	c, report, err := parse(t, "--intake.body_timeout", "7s")
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range []struct {
		name      string
		got, want any
		source    Setting
	}{
		{"intake.window", c.Intake.Window, 12 * time.Hour, Setting{"12h0m0s", SourceEnvironment, "ACTIONPULSE_INTAKE_WINDOW"}},
		{"intake.body_timeout", c.Intake.BodyTimeout, 7 * time.Second, Setting{"7s", SourceFlag, ""}},
		{"materializer.max_rows", c.Materializer.MaxRows, 1000000, Setting{1000000, SourceFile, file}},
		{"query.time_budget", c.Query.TimeBudget, 10 * time.Second, Setting{"10s", SourceDefault, ""}},
		{"storage.min_free_bytes", c.Storage.MinFreeBytes, Size(2e9), Setting{Size(2e9), SourceDefault, ""}},
	} {
		if check.got != check.want {
			t.Errorf("%s is %v, want %v", check.name, check.got, check.want)
		}
		if report[check.name] != check.source {
			t.Errorf("%s is reported as %+v, want %+v", check.name, report[check.name], check.source)
		}
	}
	if len(c.TrustedProxies) != 2 || c.TrustedProxies[1] != netip.MustParsePrefix("fd00::/8") {
		t.Errorf("trusted_proxies: %v", c.TrustedProxies)
	}
}

func TestNamedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.json")
	if _, _, err := parse(t, "--config", path); err == nil {
		t.Error("a named file that is missing was ignored")
	}
	writeFile(t, path, `{"data": "elsewhere"}`)
	if c, _, err := parse(t, "--config", path); err != nil || c.Data != "elsewhere" {
		t.Errorf("a named file may name the folder: %v", err)
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, FileName), `{"data": "elsewhere"}`)
	if _, _, err := parse(t, "--data", dir); err == nil {
		t.Error("a folder's own file named another folder")
	}
}

func TestValidateNamesTheSettingAndTheRange(t *testing.T) {
	for _, c := range []struct{ flag, value, want string }{
		{"intake.window", "0s", "intake.window: must be from 1s to 720h0m0s, not 0s"},
		{"intake.body_timeout", "1h", "intake.body_timeout: must be from 100ms to 10m0s"},
		{"credits.response_retention", "999ms", "credits.response_retention: must be from 1s to"},
		{"rate.burst", "0", "rate.burst: must be from 1 to"},
		{"rate.requests_per_second", "NaN", "rate.requests_per_second: must be from 0 to"},
		{"storage.min_free_percent", "100", "storage.min_free_percent: must be from 0 to 90"},
		{"materializer.max_rows", "0", "materializer.max_rows: must be from 1 to"},
		{"log.level", "loud", `log.level: must be one of [debug info warn error], not "loud"`},
		{"log.format", "xml", "log.format: must be one of"},
		{"listen", "8080", `listen: must be HOST:PORT`},
		{"listen", "localhost:http", `listen: must be HOST:PORT`},
		{"database", "mysql://u:hunter2@h/d", "database: must be empty or begin with postgres://"},
		{"database", "postgres://u:hunter2@h:x/d", "database: must be empty or begin with postgres://"},
		{"data", "", "data: must be the path of a folder"},
		{"storage.min_free_bytes", "2 bananas", "storage.min_free_bytes"},
	} {
		_, _, err := parse(t, "--"+c.flag+"="+c.value)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: %v, want a message with %q", c.flag, c.value, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the message holds a password: %v", err)
		}
	}
	for _, name := range []string{"storage.min_free_bytes", "storage.min_free_percent", "rate.requests_per_second", "rate.browser_requests_per_second"} {
		if _, _, err := parse(t, "--"+name+"=0", "--data", t.TempDir()); err != nil {
			t.Errorf("%s may be 0: %v", name, err)
		}
	}
}

func TestPasswordIsNeverPrinted(t *testing.T) {
	for _, address := range []string{
		"postgres://u:hunter2@h/d?sslmode=require", "postgres://u@h/d?password=hunter2", "postgres://u:hunter2@h:x/d",
		"postgres://u@h/d?sslpassword=hunter2",
	} {
		u := DatabaseURL(address)
		encoded, err := json.Marshal(map[string]any{"u": u, "s": struct{ U DatabaseURL }{u}})
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "u", u)
		_, report, _ := parse(t, "--database", address)
		for _, shown := range []string{u.String(), fmt.Sprintf("%v %+v %#v %s %q", u, u, u, u, u), string(encoded), log.String(), fmt.Sprint(report)} {
			if strings.Contains(shown, "hunter2") {
				t.Errorf("%s", shown)
			}
		}
	}
	if got := DatabaseURL("postgres://u:p@h/d").String(); got != "postgres://u:xxxxx@h/d" {
		t.Errorf("redacted: %s", got)
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "123": 123, "2GB": 2e9, "512MiB": 512 << 20, "1.5 GiB": 3 << 29, "7B": 7, "1TB": 1e12,
	} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%q is %d, %v; want %d", text, s, err, want)
		}
	}
	for _, text := range []string{"", "GB", "-1", "1PB", "NaN", "1e30", "Inf"} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %d, want an error", text, s)
		}
	}
}

// TestTrueAndFalseInAFile: as JSON has them.
func TestTrueAndFalseInAFile(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, FileName), `{"flows": {"allow_private": true}, "webhooks": {"allow_private": false}}`)
	c, report, err := parse(t, "--data", dir)
	if err != nil {
		t.Fatal(err)
	}
	if !c.Flows.AllowPrivate || c.Webhooks.AllowPrivate || report["flows.allow_private"].Source != SourceFile {
		t.Errorf("%+v %+v %+v", c.Flows, c.Webhooks, report["flows.allow_private"])
	}
}

// TestSecretKey: it is 32 bytes, and is shown nowhere.
func TestSecretKey(t *testing.T) {
	const key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	t.Setenv("ACTIONPULSE_SECRET_KEY", key)
	c, report, err := parse(t, "--data", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.SecretKey.Bytes(); err != nil || len(got) != 32 || got[31] != 31 {
		t.Errorf("%x, %v", got, err)
	}
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("m", "key", c.SecretKey)
	for _, text := range []string{string(encoded), logged.String(), fmt.Sprintf("%v %+v %#v %s", c.SecretKey, *c, *c, report["secret_key"])} {
		if strings.Contains(text, key) || !strings.Contains(text, "xxxxx") {
			t.Error(text)
		}
	}
	for _, wrong := range []string{"x", key[:40], key + "AAAA"} {
		_, _, err := parse(t, "--data", t.TempDir(), "--secret_key", wrong)
		if err == nil || !strings.Contains(err.Error(), "secret_key: must be 32 bytes in base64") || (len(wrong) > 1 && strings.Contains(err.Error(), wrong)) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
