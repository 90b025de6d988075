package serve

import (
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzhttp"
)

// compressing has answers compressed by zstd or gzip, as whoever asks takes them.
// A tail is not: each event has to leave at once.
func compressing(h http.Handler) (http.Handler, error) {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(1024), gzhttp.ContentTypeFilter(func(media string) bool {
		return !strings.HasPrefix(media, mediaEvents)
	}))
	if err != nil {
		return nil, err
	}
	return wrap(h), nil
}
