package main

import "strings"

// oneLine makes a text from the network fit for a terminal.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || (r >= 0x7f && r < 0xa0) {
			return ' '
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > 300 {
		return string(runes[:300]) + "…"
	}
	return text
}
