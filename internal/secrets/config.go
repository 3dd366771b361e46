package secrets

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
)

// Config is the configuration under the key secrets. Whoever delivers events or
// writes endpoints needs a keyset.
type Config struct {
	KeysetFile       string `koanf:"keyset_file" doc:"File with the Tink keyset, in JSON and in clear, that encrypts the sensitive values of endpoints; reenvio secrets keygen makes one. Guard it as you would a TLS key. Set this or secrets.keyset, not both."`
	Keyset           string `koanf:"keyset" secret:"true" doc:"The same JSON in base64, for platforms that hand secrets over as environment variables; a file leaks less easily."`
	RequireEncrypted *bool  `koanf:"require_encrypted" doc:"Refuse endpoints with a sensitive value in clear, which only other writers than Reenvio leave there. Switch it off only while such writers are being changed."`
}

// DefaultConfig is what applies when nothing is configured; a nil RequireEncrypted
// means the same.
func DefaultConfig() Config {
	require := true
	return Config{RequireEncrypted: &require}
}

// A second keyset could not read what the first has encrypted.
const keygenHint = "use the keyset that the dispatchers have; if there is none yet, `reenvio secrets keygen -f FILE` makes one"

// ErrNone says that no keyset is configured. Test with errors.Is.
var ErrNone = errors.New("no keyset: set secrets.keyset_file (a file) or secrets.keyset (base64 of its JSON)")

// Validate refuses two keysets. It opens no file: that is for those who need one.
func (c Config) Validate() error {
	if c.KeysetFile != "" && c.Keyset != "" {
		return errors.New("both secrets.keyset_file and secrets.keyset are set: leave one of them out")
	}
	return nil
}

// Load reads the keyset. Without one, its error names both keys of the
// configuration and the command that makes a keyset.
func Load(cfg Config) (*Keyset, error) {
	if cfg.KeysetFile == "" && cfg.Keyset == "" {
		return nil, fmt.Errorf("%w; %s", ErrNone, keygenHint)
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	raw, source, err := read(cfg)
	if err != nil {
		return nil, err
	}
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(raw)))
	if err != nil {
		// Tink hides what its JSON parser says, and rightly: that would quote the
		// keyset.
		return nil, fmt.Errorf("reading %s: not a Tink keyset in cleartext JSON (%w); %s", source, err, keygenHint)
	}
	k, err := newKeyset(handle, cfg.RequireEncrypted == nil || *cfg.RequireEncrypted)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w; %s", source, err, keygenHint)
	}
	return k, nil
}

func read(cfg Config) (raw []byte, source string, err error) {
	if cfg.KeysetFile != "" {
		source = "secrets.keyset_file"
		raw, err = os.ReadFile(cfg.KeysetFile) // the error names the path
		if errors.Is(err, os.ErrNotExist) {
			return nil, "", fmt.Errorf("reading %s: %w; %s", source, err, keygenHint)
		}
		if err != nil {
			return nil, "", fmt.Errorf("reading %s: %w", source, err)
		}
		return raw, source + " " + cfg.KeysetFile, nil
	}
	source = "secrets.keyset"
	raw, err = base64.StdEncoding.DecodeString(strings.TrimSpace(cfg.Keyset))
	if err != nil {
		return nil, "", fmt.Errorf("reading %s: not base64 (the value is the base64 of a keyset's JSON; for a path use secrets.keyset_file)", source)
	}
	return raw, source, nil
}
