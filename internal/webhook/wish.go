package webhook

import (
	"encoding/json"
	"fmt"

	"github.com/actionpulse/actionpulse/internal/credit"
)

// Wishes are what an endpoint wants to be told.
type Wishes struct {
	// Types are what it wants; at least one.
	Types []Type
	// LowBalance says when balance.low is sent; at least one if that is
	// wanted, and none otherwise.
	LowBalance []Threshold
}

// thresholdText is a threshold as it is kept.
type thresholdText struct {
	CreditType string `json:"credit_type"`
	Below      string `json:"below"`
}

// Texts are the wishes as they are kept: two JSON lists.
func (w *Wishes) Texts() (types, thresholds string, err error) {
	list := make([]thresholdText, len(w.LowBalance))
	for i, t := range w.LowBalance {
		list[i] = thresholdText{t.CreditType, t.Below.String()}
	}
	a, err := json.Marshal(w.Types)
	if err != nil {
		return "", "", fmt.Errorf("encode the types of a webhook endpoint: %w", err)
	}
	b, err := json.Marshal(list)
	if err != nil {
		return "", "", fmt.Errorf("encode the thresholds of a webhook endpoint: %w", err)
	}
	return string(a), string(b), nil
}

// ParseWishes reads what Texts has written.
func ParseWishes(types, thresholds string) (w Wishes, err error) {
	var list []thresholdText
	if err := json.Unmarshal([]byte(types), &w.Types); err != nil {
		return w, fmt.Errorf("read the types of a webhook endpoint: %w", err)
	}
	if err := json.Unmarshal([]byte(thresholds), &list); err != nil {
		return w, fmt.Errorf("read the thresholds of a webhook endpoint: %w", err)
	}
	for _, t := range list {
		below, err := credit.ParseAmount(t.Below)
		if err != nil {
			return w, fmt.Errorf("read a threshold of a webhook endpoint: %w", err)
		}
		w.LowBalance = append(w.LowBalance, Threshold{t.CreditType, below})
	}
	return w, nil
}
