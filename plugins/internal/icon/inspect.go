package icon

import (
	"bytes"
	"encoding/binary"
	"image"
	_ "image/gif"  // to know the size
	_ "image/jpeg" // to know the size
	_ "image/png"  // to know the size
	"regexp"
)

// Picture is what bytes turned out to be.
type Picture struct {
	// Type is the media type of Data.
	Type string
	Data []byte
	// Width and Height are in pixels, 0 when the picture has no size of its own or the format does not tell easily.
	Width, Height int
}

// square is true unless the picture is known to be longer on one side.
func (p *Picture) square() bool {
	if p.Width == 0 || p.Height == 0 {
		return true
	}
	return float64(min(p.Width, p.Height))/float64(max(p.Width, p.Height)) >= squareLow
}

// Inspect says what kind of picture data is by its content. ok is false for what is none, or none to show as an icon.
func Inspect(data []byte) (p Picture, ok bool) {
	p.Data = data
	switch {
	case len(data) < 16 || len(data) > MaxBytes:
		return p, false
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		p.Type = "image/png"
	case bytes.HasPrefix(data, []byte("GIF8")):
		p.Type = "image/gif"
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		p.Type = "image/jpeg"
	case bytes.HasPrefix(data, []byte("RIFF")) && string(data[8:12]) == "WEBP":
		p.Type = "image/webp"
		return p, true
	case string(data[4:8]) == "ftyp" && bytes.Contains(data[8:min(len(data), 40)], []byte("avif")):
		p.Type = "image/avif"
		return p, true
	case bytes.HasPrefix(data, []byte{0, 0, 1, 0}):
		return fromICO(data)
	case bytes.HasPrefix(data, []byte("BM")) && binary.LittleEndian.Uint32(data[10:14]) < 2048 && binary.LittleEndian.Uint32(data[2:6]) <= uint32(len(data))+3: //nolint:gosec // at most MaxBytes
		p.Type = "image/bmp"
		return p, true
	default:
		return fromSVG(data)
	}
	config, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || min(config.Width, config.Height) < smallest {
		return p, false
	}
	p.Width, p.Height = config.Width, config.Height
	return p, true
}

// fromICO reads a Windows icon, a directory of pictures. When there is a PNG among them the largest one is taken out: many
// programs show bitmaps with transparency wrongly. A size of 0 in the directory means 256 or more.
func fromICO(data []byte) (p Picture, ok bool) {
	const header, entry = 6, 16
	count := int(binary.LittleEndian.Uint16(data[4:6]))
	if count == 0 || len(data) < header+entry*count {
		return p, false
	}
	p = Picture{Type: "image/x-icon", Data: data}
	var best Picture
	for i := range count {
		e := data[header+entry*i:]
		size, offset := uint64(binary.LittleEndian.Uint32(e[8:12])), uint64(binary.LittleEndian.Uint32(e[12:16]))
		if size == 0 || offset+size > uint64(len(data)) {
			continue
		}
		width, height := int(e[0]), int(e[1])
		if width == 0 {
			width = 256
		}
		if height == 0 {
			height = 256
		}
		ok = true
		p.Width, p.Height = max(p.Width, width), max(p.Height, height)
		frame := data[offset : offset+size]
		if bytes.HasPrefix(frame, []byte("\x89PNG")) {
			if png, fine := Inspect(frame); fine && png.Width > best.Width {
				best = png
			}
		}
	}
	if len(best.Data) > 0 {
		best.Data = bytes.Clone(best.Data) // lets the rest go
		return best, true
	}
	return p, ok && p.Width >= smallest
}

var (
	svgRoot = regexp.MustCompile(`(?is)^(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*\?>\s*|<!--.*?-->\s*|<!DOCTYPE\s+svg[^>\[]*>\s*)*<(?:svg:)?svg[\s>]`)
	// svgDanger is what an SVG needs to do more than to be looked at. It is kept out although a browser that shows an SVG as an image
	// ignores it, for somebody may open the address of the icon.
	svgDanger = regexp.MustCompile(`(?i)<\s*(?:[\w-]+:)?(?:script|foreignobject|iframe|handler|animate\w*|set)[\s/>]|[\s"'/]on[a-z]+\s*=|javascript:|<!ENTITY|<\?xml-stylesheet|data:text`)
)

func fromSVG(data []byte) (Picture, bool) {
	if !svgRoot.Match(data) || svgDanger.Match(data) {
		return Picture{}, false
	}
	return Picture{Type: "image/svg+xml", Data: data}, true
}
