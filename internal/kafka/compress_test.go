package kafka

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestCompressor(t *testing.T) {
	const limit = 1<<20 + 128<<10
	c, err := NewCompressor(limit)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		batch []byte
		want  kgo.CompressionCodecType
		fits  bool
	}{
		{"small", []byte("a batch of hardly any bytes"), kgo.CodecSnappy, true},
		{"text", bytes.Repeat([]byte("a batch that is long and repeats itself "), 100_000), kgo.CodecSnappy, true},
		{"few letters", []byte(hex.EncodeToString(noise(1, 900<<10))), kgo.CodecGzip, true},
		{"repeats itself far away", bytes.Repeat(noise(2, 700<<10), 3), kgo.CodecZstd, true},
		{"noise", noise(3, 2<<20), kgo.CodecZstd, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, codec := c.Compress(new(bytes.Buffer), test.batch)
			if codec != test.want || len(out) <= limit != test.fits {
				t.Errorf("codec %d and %d bytes, want codec %d, fitting: %v", codec, len(out), test.want, test.fits)
			}
			back, err := kgo.DefaultDecompressor().Decompress(out, codec)
			if err != nil || !bytes.Equal(back, test.batch) {
				t.Errorf("it does not come back: %v", err)
			}
		})
	}
}

// noise is what no codec makes smaller.
func noise(seed uint64, size int) []byte {
	out := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(out)
	return out
}
