package actionpulse

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// KeyKind is the kind of an ingest key. It is part of an event's identity: the
// same id under two kinds is two events, under two keys of one kind it is one.
type KeyKind string

// The kinds of ingest keys.
const (
	// KeyBrowser is a browser token, apb_….
	KeyBrowser KeyKind = "browser"
	// KeyServer is a server key, aps_….
	KeyServer KeyKind = "server"
	// KeyLegacy is a key that another system has made, and apl_….
	KeyLegacy KeyKind = "legacy"
)

// keyKinds are all of them.
var keyKinds = []KeyKind{KeyBrowser, KeyServer, KeyLegacy}

// notIngest are the prefixes of credentials that intake does not take.
var notIngest = []string{"apk_", "apc_", "apt_", "apr_", "apn_"}

// KindOfKey tells the kind of an ingest key by its form. The server goes by
// what it has stored of a key; only a legacy key that happens to begin like
// another credential is another kind than it seems, and needs
// [TrackerOptions].KeyKind. It returns an error for a credential that is no
// ingest key.
func KindOfKey(key string) (KeyKind, error) {
	switch {
	case strings.HasPrefix(key, "apb_"):
		return KeyBrowser, nil
	case strings.HasPrefix(key, "aps_"):
		return KeyServer, nil
	}
	for _, prefix := range notIngest {
		if strings.HasPrefix(key, prefix) {
			return "", fmt.Errorf("actionpulse: a key that begins with %s is not an ingest key", prefix)
		}
	}
	return KeyLegacy, nil
}

func (k KeyKind) validate() error {
	if !slices.Contains(keyKinds, k) {
		return errors.New("actionpulse: KeyKind must be browser, server or legacy")
	}
	return nil
}
