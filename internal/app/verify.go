package app

import (
	"context"
	"errors"
	"log/slog"

	"github.com/actionpulse/actionpulse/internal/audit"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/replay"
	"github.com/actionpulse/actionpulse/internal/storage/ledger"
	"github.com/actionpulse/actionpulse/internal/storage/replaystore"
)

// verifyCommand is the path of the command on a server.
const verifyCommand = "/verify"

// VerifyParams say which folder to verify.
type VerifyParams struct {
	Config config.Folder
	Log    *slog.Logger
}

// Verify compares the stores of a folder, the ledger with itself, and recordings with their blobs. If a server holds the folder, it is
// asked to do it. Errors wrap ErrRefused if the folder cannot be opened.
func Verify(ctx context.Context, p VerifyParams) (audit.Report, error) {
	f := folder(p.Config.Data)
	s, err := f.open(ctx, openParams{Database: p.Config.Database, Replay: p.Config.Replay, Log: p.Log})
	if errors.Is(err, errLocked) {
		var report audit.Report
		err := f.ask(ctx, verifyCommand, nil, &report)
		return report, err
	}
	if err != nil {
		return audit.Report{}, err
	}
	report, err := s.verify(ctx, ledger.AuditParams{})
	return report, errors.Join(err, s.close())
}

// verify compares the stores, the ledger with itself, and recordings with their
// blobs.
func (s *stores) verify(ctx context.Context, p ledger.AuditParams) (audit.Report, error) {
	report, err := s.audit().Verify(ctx)
	if err != nil {
		return report, err
	}
	found, err := ledger.New(s.sql).Audit(ctx, p)
	report.AddLedger(found)
	if err != nil {
		return report, err
	}
	if s.blobs == nil { // they are in a bucket that nobody was told of
		return report, nil
	}
	replays, err := replay.Verify(ctx, replay.VerifyParams{Store: replaystore.New(s.sql), Blobs: s.blobs, Place: s.place})
	report.AddReplays(replays)
	return report, err
}
