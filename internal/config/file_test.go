package config

import (
	"path/filepath"
	"strings"
	"testing"
)

// wrongFiles are settings files and what is said of each fault of them, in
// order, behind the name of the file.
var wrongFiles = []struct {
	content string
	want    []string
}{
	// The file.
	{``, []string{`not a JSON object but nothing; {} has no settings`}},
	{" \n", []string{`not a JSON object but nothing; {} has no settings`}},
	{`[{"replay": {"secret_key": "hunter2"}}]`, []string{`not a JSON object but a list`}},
	{`null`, []string{`not a JSON object but null`}},
	{"{\n  \"listen\": ,\n}", []string{`not a JSON object: line 2, column 13 (listen): invalid character ',' at start of value`}},
	{`{`, []string{`not a JSON object: line 1, column 2: unexpected EOF`}},
	{`{} extra`, []string{`not a JSON object: line 1, column 4: invalid character 'e' after top-level value`}},
	{`{"intake": {"window": "1h"}, "intake": {}}`, []string{`not a JSON object: line 1, column 30 (intake): duplicate object member name`}},

	// Names.
	{`{"intake": {"windw": "48h"}}`, []string{`intake.windw is not a setting; there are intake.body_memory, intake.body_timeout, intake.window`}},
	{`{"quota": {"plans": {}}}`, []string{`quota is not a setting; there are alerts, credits, data, database, default_plan, eventstore, flows, intake, listen, log, materializer, plans, privacy, query, rate, replay, retention, secret_key, shutdown_timeout, storage, trusted_proxies, webhooks`}},
	{`{"plans.free": {}}`, []string{`plans.free is not a setting; there are alerts, credits, data, database, default_plan, eventstore, flows, intake, listen, log, materializer, plans, privacy, query, rate, replay, retention, secret_key, shutdown_timeout, storage, trusted_proxies, webhooks`}},
	{`{"replay": "s3://hunter2"}`, []string{`replay: must be an object with some of replay.access_key, replay.blobs, replay.secret_key, not a string`}},
	{`{"log": null}`, []string{`log: must be an object with some of log.format, log.level, not null`}},
	{`{"log.level": "info", "log": {"level": "warn"}}`, []string{`log.level: is given twice`}},

	// Kinds of values, in each group.
	{`{"listen": 8080}`, []string{`listen: must be a string, not 8080`}},
	{`{"listen": ["a", "b"]}`, []string{`listen: must be a string, not ["a","b"]`}},
	{`{"database": 5, "secret_key": 77889900, "replay": {"secret_key": {"x": "hunter2"}}}`, []string{
		`database: must be a string, not a number`, `replay.secret_key: must be a string, not an object`, `secret_key: must be a string, not a number`,
	}},
	{`{"trusted_proxies": ["10.0.0.0/8", "fd00::"]}`, []string{`trusted_proxies: must be a list of networks such as ["10.0.0.0/8", "fd00::/8"], not ["10.0.0.0/8","fd00::"]`}},
	{`{"trusted_proxies": ["10.0.0.0/8,10.1.0.0/8"]}`, []string{`trusted_proxies: must be a list of networks such as ["10.0.0.0/8", "fd00::/8"], not ["10.0.0.0/8,10.1.0.0/8"]`}},
	{`{"trusted_proxies": 10}`, []string{`trusted_proxies: must be a list of networks such as ["10.0.0.0/8", "fd00::/8"], not 10`}},
	{`{"intake": {"window": "2 days", "body_memory": "much", "body_timeout": 15}}`, []string{
		`intake.body_memory: must be a size such as "2GB" or a number of bytes, not "much"`,
		`intake.body_timeout: must be a duration such as "90s" or "48h", not 15`,
		`intake.window: must be a duration such as "90s" or "48h", not "2 days"`,
	}},
	{`{"intake": {"window": {"hours": 48}}}`, []string{`intake.window: must be a duration such as "90s" or "48h", not {"hours":48}`}},
	{`{"retention": {"events_days": "30d", "replays_days": 1.5, "interval": null}}`, []string{
		`retention.events_days: must be a whole number of at most 15 digits, not "30d"`,
		`retention.interval: must be a duration such as "90s" or "48h", not null`,
		`retention.replays_days: must be a whole number of at most 15 digits, not 1.5`,
	}},
	{`{"retention": {"events_days": 1e30}}`, []string{`retention.events_days: must be a whole number of at most 15 digits, not 1e30`}},
	{`{"rate": {"requests_per_second": true, "burst": [1]}}`, []string{
		`rate.burst: must be a whole number of at most 15 digits, not [1]`, `rate.requests_per_second: must be a number, not true`,
	}},
	{`{"storage": {"min_free_bytes": -1, "min_free_percent": "NaN"}}`, []string{
		`storage.min_free_bytes: must be a size such as "2GB" or a number of bytes, not -1`, `storage.min_free_percent: must be a number, not "NaN"`,
	}},
	{`{"alerts": {"evaluate": "yes"}, "flows": {"allow_private": 1}}`, []string{
		`alerts.evaluate: must be true or false, not "yes"`, `flows.allow_private: must be true or false, not 1`,
	}},
	{`{"log": {"level": "` + strings.Repeat("x", 80) + `", "format": {}}}`, []string{`log.format: must be a string, not {}`}},

	// Bounds.
	{`{"intake": {"window": "0s"}, "retention": {"events_days": -1, "interval": "25h"}}`, []string{
		`intake.window: must be from 1s to 720h0m0s, not 0s`, `retention.events_days: must be from 0 to 36500, not -1`,
		`retention.events_days: must be 0 or at least intake.window, which is 0s, not -1 days`, `retention.interval: must be from 1s to 24h0m0s, not 25h0m0s`,
	}},
	{`{"log": {"level": "` + strings.Repeat("x", 80) + `"}}`, []string{`log.level: must be one of [debug info warn error], not "` + strings.Repeat("x", 64) + `…"`}},
	{`{"replay": {"blobs": "/var/replays", "access_key": "id"}}`, []string{`replay.access_key: must be set together with replay.secret_key, or both left out`}},
	{`{"replay": {"blobs": "s3://u:hunter2@replays"}}`, []string{`replay.blobs: must be empty or of the form s3://bucket/prefix?endpoint=https://host&region=name`}},
	{`{"database": "mysql://u:hunter2@h/d", "secret_key": "hunter2"}`, []string{
		`database: must be empty or begin with postgres://`, "secret_key: must be 32 bytes in base64, as `openssl rand -base64 32` prints them",
	}},

	// Plans: a limit that was written but would not hold, or would allow nothing,
	// is found at the start.
	{`{"plans": 5}`, []string{`plans: must be an object of plans such as {"free": {"events": 10000, "storage": "1GB"}}, not 5`}},
	{`{"plans": "free"}`, []string{`plans: must be an object of plans such as {"free": {"events": 10000, "storage": "1GB"}}, not "free"`}},
	{`{"plans": [{}]}`, []string{`plans: must be an object of plans such as {"free": {"events": 10000, "storage": "1GB"}}, not [{}]`}},
	{`{"plans": null}`, []string{`plans: must be an object of plans such as {"free": {"events": 10000, "storage": "1GB"}}, not null`}},
	{`{"plans": {"free": null}}`, []string{`plans.free: must be an object with events, storage, trial or none of them, not null; {} is a plan without limits`}},
	{`{"plans": {"free": 5, "paid": []}}`, []string{
		`plans.free: must be an object with events, storage, trial or none of them, not 5; {} is a plan without limits`,
		`plans.paid: must be an object with events, storage, trial or none of them, not []; {} is a plan without limits`,
	}},
	{`{"plans": {"free": {"event": 5, "Storage": 1}}}`, []string{
		`plans.free.Storage: is not a setting; a plan may have events, storage and trial`, `plans.free.event: is not a setting; a plan may have events, storage and trial`,
	}},
	{`{"plans": {"a": {"events": 0}, "b": {"events": -1}, "c": {"events": 1.5}, "d": {"events": "5"}, "e": {"events": 1e18}, "f": {"events": null}}}`, []string{
		`plans.a.events: must be a whole number from 1 to 1000000000000000, not 0; leave it out for no limit`,
		`plans.b.events: must be a whole number from 1 to 1000000000000000, not -1; leave it out for no limit`,
		`plans.c.events: must be a whole number from 1 to 1000000000000000, not 1.5; leave it out for no limit`,
		`plans.d.events: must be a whole number from 1 to 1000000000000000, not "5"; leave it out for no limit`,
		`plans.e.events: must be a whole number from 1 to 1000000000000000, not 1e18; leave it out for no limit`,
		`plans.f.events: must be a whole number from 1 to 1000000000000000, not null; leave it out for no limit`,
	}},
	{`{"plans": {"a": {"storage": "much"}, "b": {"storage": true}, "c": {"storage": 0}, "d": {"storage": "1025TiB"}, "e": {"trial": "no"}}}`, []string{
		`plans.a.storage: must be a size such as "1GB" or a number of bytes, from 1 to 1125899906842624, not "much"; leave it out for no limit`,
		`plans.b.storage: must be a size such as "1GB" or a number of bytes, from 1 to 1125899906842624, not true; leave it out for no limit`,
		`plans.c.storage: must be a size such as "1GB" or a number of bytes, from 1 to 1125899906842624, not 0; leave it out for no limit`,
		`plans.d.storage: must be a size such as "1GB" or a number of bytes, from 1 to 1125899906842624, not "1025TiB"; leave it out for no limit`,
		`plans.e.trial: must be true or false, not "no"`,
	}},
	{`{"plans": {"": {}, " a": {}, "a\nb": {}, "` + strings.Repeat("x", 65) + `": {}}}`, []string{
		`plans: a name must have 1 to 64 characters, none of them a control character and no space at its ends, not ""`,
		`plans: a name must have 1 to 64 characters, none of them a control character and no space at its ends, not " a"`,
		`plans: a name must have 1 to 64 characters, none of them a control character and no space at its ends, not "a\nb"`,
		`plans: a name must have 1 to 64 characters, none of them a control character and no space at its ends, not "` + strings.Repeat("x", 64) + `…"`,
	}},
	{`{"plans": {"free": {}, "free": {}}}`, []string{`not a JSON object: line 1, column 24 (plans.free): duplicate object member name`}},
	{`{"default_plan": "free"}`, []string{`default_plan: must be empty while there are no plans, not "free"`}},
	{`{"default_plan": "fre", "plans": {"paid": {}, "free": {}}}`, []string{`default_plan: must be empty or one of the plans ["free" "paid"], not "fre"`}},
	{`{"default_plan": {}}`, []string{`default_plan: must be a string, not {}`}},
}

// TestWrongFiles: each fault is told with the file, the setting, what is there
// and what may be, in words that are no Go, and without secrets.
func TestWrongFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.json")
	for _, c := range wrongFiles {
		writeFile(t, path, c.content)
		_, _, err := parse(t, "--config", path)
		if err == nil {
			t.Errorf("%s is allowed", c.content)
			continue
		}
		var want []string
		for _, fault := range c.want {
			want = append(want, "settings file "+path+": "+fault)
		}
		if got := strings.TrimPrefix(err.Error(), "serve: "); got != strings.Join(want, "\n") {
			t.Errorf("%s:\n got %s\nwant %s", c.content, got, strings.Join(want, "\n     "))
		}
	}
}

// TestFaultsOfFileAndFlags: only what is in force from the file is said to be
// there.
func TestFaultsOfFileAndFlags(t *testing.T) {
	path := writeFile(t, filepath.Join(t.TempDir(), "c.json"), `{"intake": {"window": "0s", "body_timeout": "0s"}, "rate": {"burst": 0}}`)
	t.Setenv("ACTIONPULSE_RATE_BURST", "-5")
	_, _, err := parse(t, "--config", path, "--intake.window", "999h")
	want := []string{
		"intake.window: must be from 1s to 720h0m0s, not 999h0m0s",
		"settings file " + path + ": intake.body_timeout: must be from 100ms to 10m0s, not 0s",
		"rate.burst: must be from 1 to 1000000000, not -5",
	}
	if err == nil || err.Error() != "serve: "+strings.Join(want, "\n") {
		t.Errorf("%v", err)
	}
	for flag, want := range map[string]string{
		`{"free": {"events": 0}}`: "--plans: plans.free.events: must be a whole number from 1",
		`{"free": `:               "--plans: not a JSON object: line 1, column 10 (free): unexpected EOF",
		``:                        "--plans: not a JSON object but nothing",
	} {
		if _, _, err := parse(t, "--plans", flag); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "config.") {
			t.Errorf("%s: %v, want a message with %q", flag, err, want)
		}
	}
}

// TestFormsInAFile: numbers and switches may be strings, as in the environment.
func TestFormsInAFile(t *testing.T) {
	path := writeFile(t, filepath.Join(t.TempDir(), "c.json"), `{"trusted_proxies": [], "alerts": {"settle": 0, "evaluate": "false"},
		"rate": {"burst": "20", "requests_per_second": 1e2}, "materializer": {"max_rows": 1e3}, "storage": {"min_free_bytes": 0, "min_free_percent": "2.5"}, "log.level": "warn"}`)
	c, _, err := parse(t, "--config", path)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.TrustedProxies) != 0 || c.Alerts.Settle != 0 || c.Alerts.Evaluate || c.Rate.Burst != 20 || c.Rate.RequestsPerSecond != 100 ||
		c.Materializer.MaxRows != 1000 || c.Storage.MinFreeBytes != 0 || c.Storage.MinFreePercent != 2.5 || c.Log.Level != "warn" {
		t.Errorf("%+v", c)
	}
}
