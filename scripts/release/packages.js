import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * @typedef {object} Package
 * @property {string} name
 * @property {string} folder such as packages/hub
 * @property {string} file its package.json
 * @property {any} manifest
 */

/**
 * The packages of the workspace, each behind the ones that it needs.
 * @param {string} root
 * @returns {Package[]}
 */
export function packagesInOrder(root) {
  const folders = readdirSync(join(root, 'packages')).map((name) => `packages/${name}`)
  const waiting = folders.map((folder) => readPackage(root, folder)).filter(({ manifest }) => !manifest.private)
  /** @type {Package[]} */
  const ordered = []
  while (waiting.length > 0) {
    const next = waiting.findIndex(({ manifest }) => !waiting.some(({ name }) => neededBy(manifest).includes(name)))
    if (next < 0) throw new Error(`${waiting.map(({ name }) => name).join(', ')} need each other.`)
    ordered.push(...waiting.splice(next, 1))
  }
  return ordered
}

/**
 * @param {any} manifest
 * @param {string} version for the package, and for the packages of ours that it needs
 * @param {Package[]} packages
 */
export function withVersion(manifest, version, packages) {
  const ours = new Set(packages.map(({ name }) => name))
  const dependencies = Object.entries(manifest.dependencies ?? {}).map(([name, range]) => [
    name,
    ours.has(name) ? version : range,
  ])
  return {
    ...manifest,
    version,
    ...(dependencies.length > 0 ? { dependencies: Object.fromEntries(dependencies) } : {}),
  }
}

/**
 * @param {any} lock the lock file, which repeats the manifests of the workspace
 * @param {string} version
 * @param {Package[]} packages
 */
export function withVersions(lock, version, packages) {
  const entries = packages.map(({ folder }) => [folder, withVersion(lock.packages[folder], version, packages)])
  return { ...lock, packages: { ...lock.packages, ...Object.fromEntries(entries) } }
}

/**
 * @param {string} document the text of an OpenAPI document, whose own version is the first in it
 * @param {string} version
 */
export function withDocumentVersion(document, version) {
  return document.replace(/("version": )"[^"]*"/, `$1"${version}"`)
}

/**
 * @param {string} root
 * @param {string} folder
 * @returns {Package}
 */
function readPackage(root, folder) {
  const file = join(root, folder, 'package.json')
  const manifest = JSON.parse(readFileSync(file, 'utf8'))
  return { name: manifest.name, folder, file, manifest }
}

/** @param {any} manifest */
function neededBy(manifest) {
  return Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })
}
