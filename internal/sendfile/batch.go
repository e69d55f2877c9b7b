package sendfile

import "slices"

// batch collects items for one request and builds its body.
type batch struct {
	prefix string
	// maxItems and maxBytes bound a request.
	maxItems int
	maxBytes int
	items    []Item
	// left is an item that did not fit any more.
	left []Item
	size int
}

const suffix = "]}"

func newBatch(maxItems int, historical bool) batch {
	b := batch{prefix: `{"events":[`, maxItems: maxItems, maxBytes: MaxBody}
	if historical {
		b.prefix = `{"historical":true,"events":[`
	}
	b.size = len(b.prefix) + len(suffix)
	return b
}

func (b *batch) empty() bool { return len(b.items) == 0 }

// add takes an item and reports whether the batch is full. An item that does
// not fit waits for the next batch; one that fits none is alone in its own.
func (b *batch) add(item Item) (full bool) {
	size := len(item.JSON) + len(",")
	if !b.empty() && b.size+size > b.maxBytes {
		b.left = append(b.left, item)
		return true
	}
	b.items = append(b.items, item)
	b.size += size
	return len(b.items) >= b.maxItems
}

// next returns the items collected and starts a new batch.
func (b *batch) next() []Item {
	items, left := b.items, b.left
	b.items, b.left = nil, nil
	b.size = len(b.prefix) + len(suffix)
	for _, item := range left {
		b.add(item)
	}
	return items
}

// shrink lowers the size of the batches to come.
func (b *batch) shrink(maxBytes int) { b.maxBytes = min(b.maxBytes, maxBytes) }

// body builds the request of some items.
func (b *batch) body(items []Item) []byte {
	body := []byte(b.prefix)
	for i, item := range items {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, item.JSON...)
	}
	return slices.Concat(body, []byte(suffix))
}
