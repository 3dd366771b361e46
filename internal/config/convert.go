package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
)

// convert turns a value as it was written (text from the environment and flags; text, numbers, booleans and lists from YAML) into the
// type of its field. Numbers in YAML are not taken for text: 0123 would quietly become 83.
func convert(raw any, field Field) (any, error) {
	value, err := convertTo(raw, field.value.Type())
	if err == nil {
		return value, nil
	}
	if field.Secret { // the message must not hold what it complains about
		return nil, fmt.Errorf("the value is no %s", field.Kind())
	}
	return nil, err
}

func convertTo(raw any, t reflect.Type) (any, error) {
	if empty(raw) {
		return nil, errors.New("there is no value: give one, or leave the line out")
	}
	if t.Kind() == reflect.Pointer {
		return convertTo(raw, t.Elem())
	}
	if t == durationType {
		return toDuration(raw)
	}
	switch t.Kind() {
	case reflect.Slice:
		return toList(raw, t.Elem())
	case reflect.String:
		if text, ok := raw.(string); ok {
			return text, nil
		}
		return nil, fmt.Errorf("%v is no text: put it in quotes", raw)
	case reflect.Bool:
		switch raw {
		case true, "true":
			return true, nil
		case false, "false":
			return false, nil
		}
		return nil, fmt.Errorf("%q is neither true nor false", fmt.Sprint(raw))
	case reflect.Float32, reflect.Float64:
		number, err := strconv.ParseFloat(fmt.Sprint(raw), t.Bits())
		if err != nil || math.IsNaN(number) || math.IsInf(number, 0) {
			return nil, fmt.Errorf("%q is no number", fmt.Sprint(raw))
		}
		return number, nil
	default:
		number, err := strconv.ParseInt(fmt.Sprint(raw), 10, t.Bits())
		if errors.Is(err, strconv.ErrRange) {
			return nil, fmt.Errorf("%v is too large", raw)
		}
		if err != nil {
			return nil, fmt.Errorf("%q is no whole number", fmt.Sprint(raw))
		}
		return number, nil
	}
}

func toDuration(raw any) (time.Duration, error) {
	text := fmt.Sprint(raw)
	d, err := time.ParseDuration(text)
	if err == nil {
		return d, nil
	}
	if _, number := strconv.ParseFloat(text, 64); number == nil {
		return 0, fmt.Errorf("%q is no duration: it lacks a unit (%sms, %ss, %sm)", text, text, text, text)
	}
	return 0, fmt.Errorf("%q is no duration: write it like 100ms, 30s or 1h30m", text)
}

// toList takes a YAML list, or text with commas.
func toList(raw any, element reflect.Type) (any, error) {
	var items []any
	switch raw := raw.(type) {
	case string:
		for item := range strings.SplitSeq(raw, ",") {
			if item = strings.TrimSpace(item); item != "" {
				items = append(items, item)
			}
		}
	case []any:
		items = raw
	default:
		items = []any{raw}
	}
	list := reflect.MakeSlice(reflect.SliceOf(element), 0, len(items))
	for _, item := range items {
		value, err := convertTo(item, element)
		if err != nil {
			return nil, err
		}
		list = reflect.Append(list, reflect.ValueOf(value))
	}
	return list.Interface(), nil
}

func empty(raw any) bool {
	section, isSection := raw.(map[string]any)
	return raw == nil || isSection && len(section) == 0
}

// decoder is mapstructure without its conversions: every value has its type already.
func decoder(into any) *mapstructure.DecoderConfig {
	return &mapstructure.DecoderConfig{Result: into, ZeroFields: true, ErrorUnused: true, WeaklyTypedInput: false}
}
