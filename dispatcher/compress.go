package dispatcher

import (
	"bytes"
	"compress/gzip"
	"fmt"

	"github.com/klauspost/compress/zstd"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
)

// compressor takes snappy, the cheapest in CPU and known everywhere, and a denser
// codec where snappy leaves a batch too large: an event that its producer
// compressed well to get it into the events topic must fit into ours too.
type compressor []kgo.Compressor

// batchBytes is what fits into a batch of the largest size beside its own header.
const batchBytes = record.MaxRecordBytes - 1<<10

func newCompressor() (compressor, error) {
	var c compressor
	for _, codec := range []kgo.CompressionCodec{kgo.SnappyCompression(), kgo.GzipCompression().WithLevel(gzip.BestCompression)} {
		next, err := kgo.DefaultCompressor(codec)
		if err != nil {
			return nil, fmt.Errorf("making a compressor: %w", err)
		}
		c = append(c, next)
	}
	return append(c, densest{}), nil
}

// Compress implements kgo.Compressor.
func (c compressor) Compress(dst *bytes.Buffer, src []byte, flags ...kgo.CompressFlag) (out []byte, codec kgo.CompressionCodecType) {
	for _, try := range c {
		dst.Reset()
		if out, codec = try.Compress(dst, src, flags...); len(out) <= batchBytes {
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
