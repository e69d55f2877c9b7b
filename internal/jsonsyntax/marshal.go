package jsonsyntax

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Marshal returns v as JSON with < > & as they are, which only a web page needs
// escaped, and without a newline at its end.
func Marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
