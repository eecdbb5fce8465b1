// For the tests, which are TypeScript.
export function provide(name: string, packages: string[]): string
