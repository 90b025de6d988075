package config

// nearest returns the name that is fewest edits away from a misspelt one, if
// one is near enough to be meant.
func nearest(misspelt string, names []string) (string, bool) {
	best, least := "", len(misspelt)/3+1
	for _, name := range names {
		if d := distance(misspelt, name); d <= least && (best == "" || d < least) {
			best, least = name, d
		}
	}
	return best, best != ""
}

// distance is Levenshtein's: how many bytes must be put in, taken out or
// changed to make one text of the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
