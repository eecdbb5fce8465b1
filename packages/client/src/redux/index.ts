export {
  type ConnectionState,
  createReduxStream,
  type ReduxStream,
  type ReduxStreamOptions,
  type StoreApi,
} from './redux-stream.ts'
