// Package config owns the settings of the server: one typed struct that is
// filled from flags, the environment and a JSON file, in this order of
// precedence, and checked before anything is opened. It never opens the data
// folder and never prints a secret.
//
// A setting has one name everywhere: --intake.window on the command line,
// ACTIONPULSE_INTAKE_WINDOW in the environment, {"intake": {"window": "48h"}}
// in the file.
package config

import (
	"log/slog"
	"net/netip"
	"time"
)

// EnvPrefix begins the name of every environment variable that is read.
const EnvPrefix = "ACTIONPULSE"

// Folder says which data a command works on.
type Folder struct {
	File      string      `name:"config" placeholder:"FILE" help:"JSON file with settings. Default: config.json in the data folder, if there is one."`
	Data      string      `name:"data" default:"data" placeholder:"DIR" help:"The data folder. Default: data."`
	Database  DatabaseURL `name:"database" placeholder:"URL" help:"postgres://… for accounts and credentials. Default: SQLite in the data folder."`
	SecretKey SecretKey   `name:"secret_key" placeholder:"BASE64" help:"The 32 bytes that secrets of model providers are encrypted by, in base64; for several servers with one database. Default: the file secret.key in the data folder."`

	Replay Replay `embed:"" prefix:"replay."`

	// loaded is the settings file that was read, empty if none; fromFile are the
	// settings that were taken from it.
	loaded   string
	fromFile map[string]bool
}

// Replay is where session recordings are kept.
type Replay struct {
	Blobs     BlobURL `name:"blobs" placeholder:"URL" help:"s3://bucket/prefix?endpoint=…&region=… for the chunks of session recordings. Default: the folder replays in the data folder."`
	AccessKey string  `name:"access_key" placeholder:"ID" help:"Access key of the bucket. Default: as AWS's own programs find it."`
	SecretKey Secret  `name:"secret_key" placeholder:"KEY" help:"Secret key of the bucket."`
}

// Config is every setting of the server.
type Config struct {
	Folder `embed:""`

	Listen          string         `name:"listen" default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Address to serve HTTP on; port 0 takes any free one. Default: 127.0.0.1:8080."`
	TrustedProxies  []netip.Prefix `name:"trusted_proxies" placeholder:"CIDR" help:"Proxies whose X-Forwarded-For is believed."`
	ShutdownTimeout time.Duration  `name:"shutdown_timeout" default:"30s" help:"How long requests under way may take after SIGTERM."`

	Intake       Intake       `embed:"" prefix:"intake."`
	Credits      Credits      `embed:"" prefix:"credits."`
	Webhooks     Webhooks     `embed:"" prefix:"webhooks."`
	Alerts       Alerts       `embed:"" prefix:"alerts."`
	Flows        Flows        `embed:"" prefix:"flows."`
	Privacy      Privacy      `embed:"" prefix:"privacy."`
	Rate         Rate         `embed:"" prefix:"rate."`
	Quota        Quota        `embed:""`
	Query        Query        `embed:"" prefix:"query."`
	Retention    Retention    `embed:"" prefix:"retention."`
	Storage      Storage      `embed:"" prefix:"storage."`
	EventStore   EventStore   `embed:"" prefix:"eventstore."`
	Materializer Materializer `embed:"" prefix:"materializer."`
	Log          Log          `embed:"" prefix:"log."`
}

// Intake is how events are taken in.
type Intake struct {
	Window      time.Duration `name:"window" default:"48h" help:"How long the id of an event is remembered."`
	BodyTimeout time.Duration `name:"body_timeout" default:"15s" help:"How long a request's body may take to arrive."`
	BodyMemory  Size          `name:"body_memory" default:"256MiB" help:"Memory for the bodies of all requests under way; past it intake answers 503."`
}

// Credits is how movements of credits are answered.
type Credits struct {
	ResponseRetention time.Duration `name:"response_retention" default:"24h" help:"How long the first answer to a movement is kept for repeats; its key is kept for ever."`
}

// Webhooks is where webhooks may be sent to.
type Webhooks struct {
	AllowPrivate bool `name:"allow_private" default:"false" help:"Send webhooks to addresses of private networks and of this machine, too."`
}

// Alerts is how alerts are judged.
type Alerts struct {
	Evaluate bool          `name:"evaluate" default:"true" help:"Judge alerts by the events of this server. Where several servers share a database, only those that take in events should."`
	Settle   time.Duration `name:"settle" default:"1m" help:"How long after its end a period is judged, for events that come later than they happened."`
}

// Flows is how flows are run and what they may call.
type Flows struct {
	Concurrency    int           `name:"concurrency" default:"256" help:"Executions that run at once; further ones wait in the queue."`
	OTLPEndpoint   string        `name:"otlp_endpoint" placeholder:"URL" help:"Collector that traces of executions are sent to by OTLP over HTTP, such as http://127.0.0.1:4318; none if empty."`
	TraceRetention time.Duration `name:"trace_retention" default:"720h" help:"How long what the steps of an execution said and heard is kept after its end; the execution itself is kept for ever."`
	AllowPrivate   bool          `name:"allow_private" default:"false" help:"Let flows call addresses of private networks and of this machine, too, such as a server of models."`
}

// Privacy is how privacy jobs leave what they were asked for.
type Privacy struct {
	ExportRetention time.Duration `name:"export_retention" default:"168h" help:"How long the archive of a finished export of a person's data is kept."`
}

// Rate holds the rate budgets. A rate of 0 is unlimited.
type Rate struct {
	RequestsPerSecond        float64 `name:"requests_per_second" default:"5000" help:"Requests a second for each key; 0 is unlimited."`
	Burst                    int     `name:"burst" default:"10000" help:"Requests a key may make at once."`
	BrowserRequestsPerSecond float64 `name:"browser_requests_per_second" default:"50" help:"Requests a second for each client address under a browser token; 0 is unlimited."`
	BrowserBurst             int     `name:"browser_burst" default:"200" help:"Requests a client address may make at once."`
}

// Query is how queries are answered.
type Query struct {
	TimeBudget time.Duration `name:"time_budget" default:"10s" help:"Time a query may take before it is refused."`
}

// Retention is how long data is kept by projects that do not say so themselves.
type Retention struct {
	EventsDays  int           `name:"events_days" default:"0" help:"Days after which events are deleted; 0 keeps them for ever. A project's own setting comes first."`
	ReplaysDays int           `name:"replays_days" default:"0" help:"Days after which session replays are deleted; 0 keeps them for ever. A project's own setting comes first."`
	Interval    time.Duration `name:"interval" default:"1h" help:"How often is looked for what has been kept long enough; at the start, too."`
}

// Storage is how much room is left on disk. The larger of the two counts;
// both may be 0.
type Storage struct {
	MinFreeBytes   Size    `name:"min_free_bytes" default:"2GB" help:"Free space below which intake is refused."`
	MinFreePercent float64 `name:"min_free_percent" default:"5" help:"The same as a share of the file system."`
}

// EventStore is what the event store may use.
type EventStore struct {
	MemoryLimit Size `name:"memory_limit" default:"2GB" help:"Memory the event store may use."`
	Threads     int  `name:"threads" default:"0" help:"Threads one query may use; 0 is half the processors."`
}

// Materializer is how soon acknowledged events become visible to queries.
type Materializer struct {
	MaxRows  int           `name:"max_rows" default:"20000" help:"Rows written in one transaction."`
	MaxDelay time.Duration `name:"max_delay" default:"500ms" help:"How long an event may wait for others to be written with."`
}

// Log is what the process says.
type Log struct {
	Level  string `name:"level" default:"info" help:"debug, info, warn or error."`
	Format string `name:"format" default:"auto" help:"text, json, or auto: text on a terminal."`
}

// SlogLevel returns the level; Info if Level is not one that Validate accepts.
func (l Log) SlogLevel() slog.Level {
	return levels[l.Level]
}

var levels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}
