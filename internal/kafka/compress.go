package kafka

import (
	"bytes"
	"compress/gzip"
	"fmt"

	"github.com/klauspost/compress/zstd"
	"github.com/twmb/franz-go/pkg/kgo"
)

// compressor takes snappy, the cheapest in CPU and known everywhere, and a denser
// codec where snappy leaves a batch too large.
type compressor struct {
	codecs []kgo.Compressor
	fits   int
}

// NewCompressor is for who writes an event on: what its producer compressed well to
// get it into the events topic must fit into ours too. It takes the first codec
// that makes a batch at most limit bytes long, the topic's max.message.bytes.
func NewCompressor(limit int) (kgo.Compressor, error) {
	const batchHeader = 1 << 10 // far more than the 61 bytes that it has
	c := compressor{fits: limit - batchHeader}
	for _, codec := range []kgo.CompressionCodec{kgo.SnappyCompression(), kgo.GzipCompression().WithLevel(gzip.BestCompression)} {
		next, err := kgo.DefaultCompressor(codec)
		if err != nil {
			return nil, fmt.Errorf("making a compressor: %w", err)
		}
		c.codecs = append(c.codecs, next)
	}
	c.codecs = append(c.codecs, densest{})
	return c, nil
}

// Compress implements kgo.Compressor.
func (c compressor) Compress(dst *bytes.Buffer, src []byte, flags ...kgo.CompressFlag) (out []byte, codec kgo.CompressionCodecType) {
	for _, try := range c.codecs {
		dst.Reset()
		if out, codec = try.Compress(dst, src, flags...); len(out) <= c.fits {
			break
		}
	}
	return out, codec
}

// densest is zstd with a window over the whole batch; kgo's own has one of 64 KiB,
// and finds nothing that repeats further apart.
type densest struct{}

// Compress implements kgo.Compressor.
func (densest) Compress(dst *bytes.Buffer, src []byte, _ ...kgo.CompressFlag) ([]byte, kgo.CompressionCodecType) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return src, kgo.CodecNone
	}
	return encoder.EncodeAll(src, dst.AvailableBuffer()), kgo.CodecZstd
}
