// Checks events in ECS by the fields that @elastic/ecs lists:
//
//     node ecs.js MODULES FOLDER
//
// Prints what was checked as JSON, or the first faults, and exits 1.
'use strict';
const fs = require('fs');
const path = require('path');
const [modules, folder] = process.argv.slice(2);
const at = path.join(modules, 'node_modules', '@elastic', 'ecs');
const { EcsFlat } = require(at);
const { version } = require(path.join(at, 'package.json'));
const keys = new Set(JSON.parse(fs.readFileSync(path.join(folder, 'keys.json'))).ecs);

const faults = [];
const seen = new Set();
function fault(text) {
  faults.push(text.slice(0, 2000));
}

function fits(field, value) {
  switch (field.type) {
    case 'long':
      return Number.isInteger(value);
    case 'integer':
      return Number.isInteger(value) && Math.abs(value) < 2 ** 31;
    case 'date':
      return typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/.test(value) && !isNaN(Date.parse(value));
    case 'keyword':
    case 'match_only_text':
    case 'wildcard':
      return typeof value === 'string' && (field.index === false || Buffer.byteLength(value) <= 32766);
    default:
      return false;
  }
}

function check(name, value, line) {
  const field = EcsFlat[name];
  seen.add(name);
  if (!field) return fault(`${name} is no field of ECS: ${line}`);
  const isArray = field.normalize.includes('array');
  if (Array.isArray(value) !== isArray) return fault(`${name}: an array or not: ${line}`);
  for (const v of isArray ? value : [value]) {
    if (!fits(field, v)) fault(`${name}: ${JSON.stringify(v).slice(0, 200)} is no ${field.type}`);
    if (field.allowed_values && !field.allowed_values.some((a) => a.name === v)) fault(`${name}: ${v} is not allowed`);
  }
}

function walk(prefix, object, line) {
  for (const [name, value] of Object.entries(object)) {
    const full = prefix + name;
    if (!keys.has(full) && (typeof value !== 'object' || Array.isArray(value))) fault(`${full} is not in the table: ${line}`);
    if (value && typeof value === 'object' && !Array.isArray(value)) walk(full + '.', value, line);
    else if (!full.startsWith('ledgerlake.')) check(full, value, line);
  }
}

let n = 0;
for (const line of fs.readFileSync(path.join(folder, 'ecs.jsonl'), 'utf8').split('\n').slice(0, -1)) {
  const event = JSON.parse(line);
  n++;
  if (event.ecs.version !== version) fault(`ecs.version ${event.ecs.version}, and the package is ${version}`);
  const categories = EcsFlat['event.category'].allowed_values.filter((a) => event.event.category.includes(a.name));
  for (const type of event.event.type) {
    if (!categories.some((c) => c.expected_event_types.includes(type))) fault(`event.type ${type} in ${event.event.category}`);
  }
  walk('', event, line);
  if (faults.length >= 5) break;
}
if (faults.length > 0) {
  console.error(faults.slice(0, 5).join('\n'));
  process.exit(1);
}
console.log(JSON.stringify({ ecs: n, fields: seen.size }));
