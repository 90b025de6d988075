package serve

import (
	"fmt"
	"strings"
)

// An object is a JSON object of the document.
type object = map[string]any

func (s *Server) openapi(c *call) error { return c.json(Document()) }

// Document returns the OpenAPI document: version 3.1, made from the table that
// also makes the routes, so that neither has what the other lacks.
// Source: OpenAPI Specification v3.1.1.
func Document() map[string]any {
	paths := object{}
	for _, r := range routes() {
		paths[r.path] = object{"get": r.operation()}
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "ledgerlake-export serve", "version": "1",
			"description": "Reads an archive of audit records. Nothing can be changed. A token is good for some tenants; other tenants' paths are as those that do not exist.",
			"license":     object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers":    []any{object{"url": "/"}},
		"paths":      paths,
		"security":   []any{object{"token": []any{}}},
		"components": object{"securitySchemes": securitySchemes(), "schemas": schemas(), "responses": responses()},
	}
}

func securitySchemes() object {
	return object{"token": object{"type": "http", "scheme": "bearer", "description": "A token that `ledgerlake-export token new` made."}}
}

// operation describes a route.
func (r *route) operation() object {
	op := object{"operationId": r.name, "summary": r.summary, "responses": r.responses()}
	if r.about != "" {
		op["description"] = r.about
	}
	if r.open {
		op["security"] = []any{}
	}
	if all := r.described(); len(all) > 0 {
		op["parameters"] = all
	}
	return op
}

// described returns all parameters: of the path, the query and headers.
func (r *route) described() (all []any) {
	for segment := range strings.SplitSeq(r.path, "/") {
		if name, ok := wildcard(segment); ok {
			all = append(all, object{"name": name, "in": "path", "required": true, "description": pathAbout[name], "schema": object{"type": "string", "minLength": 1}})
		}
	}
	for _, p := range r.query {
		all = append(all, p.described("query"))
	}
	for _, p := range r.header {
		all = append(all, p.described("header"))
	}
	return all
}

var pathAbout = map[string]string{
	"tenant":  "The tenant's id, exact: nothing is folded or trimmed.",
	"turn":    "The turn's id; of decision records the decision's id, of interaction entries the trace's.",
	"session": "The session's id; of decision records the conversation's.",
	"record":  "A recordId, or a place: topicId:partition:seq.",
}

func (p *parameter) described(in string) object {
	schema := object{"type": p.kind}
	if p.format != "" {
		schema["format"] = p.format
	}
	o := object{"name": p.name, "in": in, "required": p.required, "description": p.about, "schema": schema}
	if p.example != "" && p.kind != "integer" {
		o["example"] = p.example
	}
	return o
}

// responses describes the answers of a route, also those that all have.
func (r *route) responses() object {
	all := object{}
	for _, a := range r.answers {
		if a.media == "" {
			all[fmt.Sprint(a.status)] = object{"description": a.about, "content": problemContent()}
			continue
		}
		schema := object{"type": "string"}
		if a.schema != "" {
			schema = object{"$ref": "#/components/schemas/" + a.schema}
		}
		all[fmt.Sprint(a.status)] = object{"description": a.about, "content": object{a.media: object{"schema": schema}}}
	}
	common := map[string]string{"400": "Request"}
	if !r.open {
		common = map[string]string{"400": "Request", "401": "Token", "404": "Nowhere", "429": "Busy", "500": "Stored", "502": "Store", "503": "Full"}
	}
	for status, name := range common {
		if _, own := all[status]; !own {
			all[status] = object{"$ref": "#/components/responses/" + name}
		}
	}
	return all
}

func problemContent() object {
	return object{"application/problem+json": object{"schema": object{"$ref": "#/components/schemas/Problem"}}}
}

// responses of components are the problems that all routes have.
func responses() object {
	all := object{}
	for name, p := range map[string]*problem{"Request": errRequest, "Token": errToken, "Nowhere": errNowhere, "Busy": errBusy, "Stored": errStored, "Store": errStore, "Full": errFull} {
		all[name] = object{"description": p.Title, "content": problemContent()}
	}
	return all
}

func text(about string) object    { return object{"type": "string", "description": about} }
func whole(about string) object   { return object{"type": "integer", "description": about} }
func boolean(about string) object { return object{"type": "boolean", "description": about} }

func orNull(o object) object {
	o["type"] = []any{o["type"], "null"}
	return o
}

func list(of object) object { return object{"type": "array", "items": of} }

func ref(name string) object { return object{"$ref": "#/components/schemas/" + name} }

func shape(properties object, required ...string) object {
	o := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		o["required"] = required
	}
	return o
}

// schemas are the forms of the answers. What is open in its form says so by having
// no additionalProperties: false.
func schemas() object {
	return object{
		"Problem": shape(object{
			"type": text("One of those in the documentation; begins with " + ProblemBase), "title": text("For people."), "status": whole("As of the answer."),
			"detail": text("What to do."),
		}, "type", "title", "status"),
		"Health":   shape(object{"status": text("ok")}, "status"),
		"Document": object{"type": "object"},
		"Tenants":  shape(object{"tenants": list(text("An id.")), "token": text("The name of the token.")}, "tenants", "token"),
		"Record": object{
			"type": "object", "required": []any{"$ledgerlake"},
			"description": "A record as its producer sent it, and `$ledgerlake`.", "properties": object{"$ledgerlake": object{"type": "object"}},
		},
		"Records": shape(object{
			"records": list(ref("Record")), "next": orNull(text("What `before` has to be for the records that follow.")),
			"complete": boolean("false: some stored object does not fit, and may have had more."),
		}, "records", "next", "complete"),
		"Recent": shape(object{"complete": boolean("As of Records."), "sessions": list(shape(object{
			"session": text("Its id; empty for records without one."), "last": text("Time of its newest record."),
			"turns": list(shape(object{"turn": text("Its id."), "last": text("Time."), "records": whole("That were looked at."), "parent": text("parentTurnId"), "user": text("userId")}, "turn", "last", "records")),
		}, "session", "last", "turns"))}, "sessions", "complete"),
		"Bundle": object{"type": "object", "description": "A proof bundle, as the documentation of proofs describes it.", "required": []any{"format"}},
		"Check": shape(object{
			"state": object{"type": "string", "enum": []any{checkProved, checkUnsigned, checkPartly, checkWaiting, checkFailed}},
			"text":  text("For people."), "anchor": text("What the anchor does."), "key": text("Whose signature counts."), "treeSize": whole("Rows of the tree."),
			"root": text("Hex."), "exit": whole("As `ledgerlake-verify row` would end."), "tier": text("none, T0, T1, T2 or T3."), "signedBy": list(text("A public key.")),
			"proved": list(text("A sentence.")), "notProved": list(text("A sentence.")), "gated": list(text("A record id of an order.")),
		}, "state", "text", "anchor", "key", "exit", "tier"),
		"Timeline": shape(object{
			"turn": text("Its id; empty where it has no records."), "sessions": list(text("An id.")), "parent": text("The turn above."), "complete": boolean("As of Records."),
			"sums": ref("Sums"), "steps": list(ref("Step")), "subagents": list(ref("Subagent")), "subagentsCut": boolean("There are too many turns below it to be told."),
		}, "turn", "sessions", "complete", "sums", "steps", "subagents", "subagentsCut"),
		"Turns": shape(object{
			"complete": boolean("As of Records."), "cut": boolean("The session has more rows than were looked through."),
			"turns": list(shape(object{"turn": text("Its id."), "parent": text("The turn above."), "sums": ref("Sums")}, "turn", "sums")),
		}, "turns", "complete", "cut"),
		"Sums": object{"type": "object"},
		"Subagent": shape(object{
			"turn": text("Its id."), "session": text("Its id."), "depth": whole("subagentDepth"), "sums": ref("Sums"), "subagents": list(ref("Subagent")),
		}, "turn", "sums", "subagents"),
		"Step": shape(object{
			"place": text("topicId:partition:seq"), "kind": text("Of the record."), "at": text("createdAt, else archivedAt."), "rowHash": text("Hex."),
		}, "place", "kind", "at", "rowHash"),
	}
}
