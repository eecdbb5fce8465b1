// TypeScript 7 rejects `import '@rejoin/client/status.css'` without types (TS2882).
export {}
