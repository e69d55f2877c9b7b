package app_test

import (
	"database/sql"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// verify looks at the ledger too, on a folder that is served and on one that is
// not.
func TestVerifySeesTheLedger(t *testing.T) {
	s := apptest.New(t)
	r := s.MustServe()
	topup(t, s, r)
	if report := s.Verify(); !report.OK || report.Movements != 1 || report.Balances != 1 {
		t.Errorf("got %+v", report)
	}
	r.MustStop()
	if report := s.Verify(); !report.OK || report.Movements != 1 {
		t.Errorf("got %+v", report)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(s.Dir, "actionpulse.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `UPDATE balances SET posted = posted + 1`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	differs := func(where string) {
		if report := s.Verify(); report.OK || len(report.Differences) != 1 || !strings.Contains(report.Differences[0], "its entries sum to 5000000") {
			t.Errorf("%s: got %+v", where, report)
		}
	}
	differs("stopped")
	r = s.MustServe()
	differs("served")
	r.MustStop()
}

// topup gives a customer 5 credits.
func topup(t *testing.T, s *apptest.Site, r *apptest.Running) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.URL+"/v1/customers/ada/topup",
		strings.NewReader(`{"credit_type":"main","amount":"5"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.Setup.ProjectKey)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", "order-1")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%d %v", response.StatusCode, err)
	}
}
