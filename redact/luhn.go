package redact

import "regexp"

// luhn finds the numbers of payment cards: 13 to 19 digits whose first ones are
// those of an issuer, as many as that issuer gives, with a right check digit
// (Luhn's, ISO/IEC 7812-1). They stand in one piece, or in groups with a space or
// a dash between them. In one piece, lengths that few issuers use (13, 17 to 19)
// need a word near them, for ids are as long.
type luhn struct{}

// cardWord is what makes a number of an unusual length that of a card.
var cardWord = &word{"cavidiunjcpaccamme", regexp.MustCompile(`(?i)card|visa|amex|american express|discover|union ?pay|\bjcb\b|\bpan\b|\bcc\b`)}

const (
	minCard = 13
	maxCard = 19
)

func (luhn) find(s *subject, number int) {
	b := s.b
	for i := nextDigit(b, 0); i < len(b); {
		if to, ok := s.cardAt(i); ok {
			s.add(i, to, number)
			i = nextDigit(b, to)
			continue
		}
		i = nextDigit(b, digitsAt(b, i))
	}
}

// cardAt returns the end of the longest card number that begins at i.
func (s *subject) cardAt(i int) (to int, ok bool) {
	b := s.b
	var digits [maxCard]byte
	var sep byte // between the groups; 0: there is one group
	n := 0
	for at, end := i, 0; ; at = end + 1 {
		end = digitsAt(b, at)
		if group := end - at; n+group > maxCard || sep != 0 && group < 3 || n == 0 && group < 4 {
			return to, ok
		}
		n += copy(digits[n:], b[at:end])
		if isCard(digits[:n]) && s.cardStands(i, end, n, sep) {
			to, ok = end, true
		}
		if end+1 >= len(b) || !isDigit(b[end+1]) || b[end] != ' ' && b[end] != '-' || sep != 0 && b[end] != sep {
			return to, ok
		}
		sep = b[end]
	}
}

// cardStands reports whether what stands around the n digits of a card is no part
// of the number.
func (s *subject) cardStands(from, to, n int, sep byte) bool {
	b := s.b
	if !alone(b, from, to) || sep == '-' && inDashes(b, from, to) {
		return false
	}
	return sep != 0 || n > minCard && n < 17 || s.near(cardWord, from, to)
}

// inDashes reports whether a number goes on beyond a dash, as the groups of a
// UUID do.
func inDashes(b []byte, from, to int) bool {
	return from > 1 && b[from-1] == '-' && isAlnum(b[from-2]) || to+1 < len(b) && b[to] == '-' && isAlnum(b[to+1])
}

// An issuer is a range of first digits, and how many digits its numbers have.
type issuer struct {
	from, to int // of the first digits, as many as from has
	min, max int
}

// issuers are the ranges that are in use. Source: ISO/IEC 7812, as the networks
// publish their parts of it.
var issuers = []issuer{
	{4, 4, 13, 13},
	{4, 4, 16, 16},
	{4, 4, 19, 19}, // Visa
	{51, 55, 16, 16},
	{2221, 2720, 16, 16}, // Mastercard
	{34, 34, 15, 15},
	{37, 37, 15, 15}, // American Express
	{6011, 6011, 16, 19},
	{644, 649, 16, 19},
	{65, 65, 16, 19}, // Discover
	{300, 305, 14, 14},
	{3095, 3095, 14, 14},
	{36, 36, 14, 14},
	{38, 39, 14, 14},     // Diners Club
	{3528, 3589, 16, 19}, // JCB
	{62, 62, 16, 19},     // UnionPay
	{5018, 5018, 13, 19},
	{5020, 5020, 13, 19},
	{5038, 5038, 13, 19},
	{5893, 5893, 13, 19}, // Maestro
	{6304, 6304, 13, 19},
	{6759, 6759, 13, 19},
	{6761, 6763, 13, 19},
	{2200, 2204, 16, 19}, // Mir
}

func isCard(digits []byte) bool {
	if len(digits) < minCard {
		return false
	}
	for i := range issuers {
		if issuers[i].has(digits) {
			return checks(digits)
		}
	}
	return false
}

func (r *issuer) has(digits []byte) bool {
	if len(digits) < r.min || len(digits) > r.max {
		return false
	}
	first := 0
	for i, of := 0, r.from; of > 0; i, of = i+1, of/10 {
		first = first*10 + int(digits[i]-'0')
	}
	return r.from <= first && first <= r.to
}

// checks reports whether the last digit is the check digit of the others: every
// second one from the right doubled, the sum of all digits is a multiple of 10.
func checks(digits []byte) bool {
	sum := 0
	for i, c := range digits {
		d := int(c - '0')
		if (len(digits)-i)%2 == 0 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}
