package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/actionpulse/actionpulse/internal/audit"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/crash"
	"github.com/actionpulse/actionpulse/internal/intakestore"
)

// RepairParams say which folder to repair.
type RepairParams struct {
	Config config.Folder
	// AcceptLoss gives up events that are in neither store.
	AcceptLoss bool
	// Window is the deduplication window for a new intake store.
	Window time.Duration
	Log    *slog.Logger
}

// RepairReport says what was done.
type RepairReport struct {
	// Done are the steps, in words.
	Done []string `json:"done"`
	// Lost is how many acknowledged items are in neither store any more.
	Lost   uint64       `json:"lost"`
	Verify audit.Report `json:"verify"`
}

func (r *RepairReport) did(format string, args ...any) {
	r.Done = append(r.Done, fmt.Sprintf(format, args...))
}

// Repair rebuilds what can be rebuilt: the claims from the stored events and
// the waiting records, the intake store if it is missing or damaged, and what
// was set aside is tried again. It moves a damaged intake store aside and
// deletes nothing. Errors wrap ErrRefused if the folder is in use or a part is
// missing that nothing can bring back.
func Repair(ctx context.Context, p RepairParams) (RepairReport, error) {
	var report RepairReport
	f := folder(p.Config.Data)
	params := openParams{Database: p.Config.Database, Log: p.Log}
	s, identity, err := f.openBase(ctx, params)
	if err != nil {
		return report, err
	}
	if err := f.repair(ctx, s, identity, p, &report); err != nil {
		return report, errors.Join(err, s.close())
	}
	report.Verify, err = s.audit().Verify(ctx)
	return report, errors.Join(err, s.close())
}

func (f folder) repair(ctx context.Context, s *stores, identity [16]byte, p RepairParams, report *RepairReport) error {
	if err := f.repairIntake(ctx, s, identity, p, report); err != nil {
		return err
	}
	if err := f.repairGap(ctx, s, p, report); err != nil {
		return err
	}
	window := s.intake.State().Window
	if window == 0 {
		window = p.Window.Milliseconds()
	}
	n, err := s.audit().Rebuild(ctx, window)
	if err != nil {
		return err
	}
	report.did("rebuilt %d claims from the stored and waiting events", n)
	stored, left, err := s.events.Redrive(ctx)
	if err != nil {
		return fmt.Errorf("try again what was set aside: %w", err)
	}
	if stored+left > 0 {
		report.did("tried the %d items set aside again: %d are stored now", stored+left, stored)
	}
	return nil
}

// repairIntake opens the intake store, or puts a new one in its place.
func (f folder) repairIntake(ctx context.Context, s *stores, identity [16]byte, p RepairParams, report *RepairReport) error {
	options := f.intakeOptions(p.Log, nil)
	options.Repair = true
	acknowledged, err := intakestore.Acknowledged(options)
	if err != nil {
		report.did("the file %s could not be read, so it is not known whether acknowledged events are missing", markFile)
	}
	s.intake, err = intakestore.Open(options)
	if err == nil && s.intake.Identity() != identity {
		err = errors.Join(errors.New("it belongs to another data folder"), s.intake.Close())
		s.intake = nil
	}
	if err != nil {
		if err := f.replaceIntake(ctx, s, identity, p, report, err); err != nil {
			return err
		}
		crash.Point("repair.replaced")
	}
	mark, err := s.events.Mark(ctx)
	if err != nil {
		return err
	}
	if last := max(s.intake.State().Last, mark.Position); acknowledged > last {
		report.Lost = acknowledged - last
		report.did("positions %d to %d were acknowledged and are lost", last+1, acknowledged)
	}
	return nil
}

func (f folder) replaceIntake(ctx context.Context, s *stores, identity [16]byte, p RepairParams, report *RepairReport, cause error) error {
	switch _, err := os.Stat(f.path(intakeDir)); {
	case errors.Is(err, os.ErrNotExist):
		report.did("%s was missing", intakeDir)
	case err != nil:
		return fmt.Errorf("look for %s: %w", intakeDir, err)
	default:
		aside := fmt.Sprintf("%s.damaged-%s", intakeDir, time.Now().UTC().Format("20060102T150405.000"))
		if err := os.Rename(f.path(intakeDir), f.path(aside)); err != nil {
			return fmt.Errorf("move %s aside: %w", intakeDir, err)
		}
		report.did("%s could not be used (%v) and was moved to %s", intakeDir, cause, aside)
	}
	mark, err := s.events.Mark(ctx)
	if err != nil {
		return err
	}
	options := f.intakeOptions(p.Log, nil)
	options.Repair = true
	state := intakestore.State{Last: mark.Position, Received: mark.Received, Window: p.Window.Milliseconds()}
	if err := intakestore.Create(options, identity, state); err != nil {
		return err
	}
	report.did("made a new intake store that goes on after position %d", mark.Position)
	s.intake, err = intakestore.Open(options)
	return err
}

// repairGap gives up positions that are in neither store, if that was asked
// for.
func (f folder) repairGap(ctx context.Context, s *stores, p RepairParams, report *RepairReport) error {
	mark, err := s.events.Mark(ctx)
	if err != nil {
		return err
	}
	first, err := s.intake.First()
	if err != nil {
		return err
	}
	if first <= mark.Position+1 {
		return nil
	}
	if !p.AcceptLoss {
		return f.checkPositions(ctx, s)
	}
	if err := s.events.Skip(ctx, first-1); err != nil {
		return fmt.Errorf("give up positions: %w", err)
	}
	report.Lost += first - 1 - mark.Position
	report.did("gave up positions %d to %d, which are in neither store", mark.Position+1, first-1)
	return nil
}
