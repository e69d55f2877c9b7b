package intakestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
)

// The mark is a small file beside the store, outside its folder, that holds
// the last position acknowledged. The engine takes a damaged end of its log
// for a write that was under way when the process died, and opens without it;
// an older copy of the folder opens just as well. The mark tells both apart
// from the store that acknowledged.
//
// It is overwritten in place before each acknowledgement and left to the
// operating system to write back, so it survives the death of the process. A
// power cut may leave an older value, which only makes the check weaker.
type mark struct {
	file *os.File
}

const markSize = 8 + 4

func createMark(path string, last uint64) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("create mark: %w", err)
	}
	m := mark{file}
	if err := m.write(last); err != nil {
		return joinClose(err, m)
	}
	return m.Close()
}

// openMark returns the mark and the position it holds.
func openMark(path string) (mark, uint64, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return mark{}, 0, fmt.Errorf("%w: the file %s is missing", ErrDamaged, path)
	}
	if err != nil {
		return mark{}, 0, fmt.Errorf("open mark: %w", err)
	}
	var b [markSize]byte
	n, err := file.ReadAt(b[:], 0)
	if n != markSize {
		return mark{}, 0, joinClose(fmt.Errorf("%w: the file %s is cut short: %w", ErrDamaged, path, err), file)
	}
	if crc32.ChecksumIEEE(b[:8]) != binary.BigEndian.Uint32(b[8:]) {
		return mark{}, 0, joinClose(fmt.Errorf("%w: the file %s is malformed", ErrDamaged, path), file)
	}
	return mark{file}, binary.BigEndian.Uint64(b[:8]), nil
}

func (m mark) write(last uint64) error {
	var b [markSize]byte
	binary.BigEndian.PutUint64(b[:], last)
	binary.BigEndian.PutUint32(b[8:], crc32.ChecksumIEEE(b[:8]))
	if _, err := m.file.WriteAt(b[:], 0); err != nil {
		return fmt.Errorf("write mark: %w", err)
	}
	return nil
}

// Close makes the mark durable and closes its file.
func (m mark) Close() error {
	if err := errors.Join(m.file.Sync(), m.file.Close()); err != nil {
		return fmt.Errorf("close mark: %w", err)
	}
	return nil
}

// Acknowledged returns the last position that was acknowledged, as far as the
// mark says, of a store that nobody has open. It returns ErrDamaged if there is
// no store beside the mark, or no mark.
func Acknowledged(o Options) (uint64, error) {
	if _, err := checkManifest(o.Dir); err != nil {
		return 0, err
	}
	m, last, err := openMark(o.Mark)
	if err != nil {
		return 0, err
	}
	return last, m.Close()
}
