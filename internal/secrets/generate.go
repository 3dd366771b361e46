package secrets

import (
	"errors"
	"fmt"
	"os"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
)

// Generate writes a new keyset with one AES256-GCM key to path, readable by its
// owner alone. It never overwrites: who loses a keyset loses every endpoint
// that was encrypted with it.
func Generate(path string) (err error) {
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return fmt.Errorf("making a keyset: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("writing a keyset: %w; it is left as it is, since what it has encrypted opens with nothing else: name another file", err)
	}
	if err != nil {
		return fmt.Errorf("writing a keyset: %w", err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			// Half a keyset would stand in the way of the next try.
			err = errors.Join(fmt.Errorf("writing a keyset: %w", err), os.Remove(path))
		}
	}()
	if err := insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(f)); err != nil {
		return err
	}
	return f.Sync()
}
