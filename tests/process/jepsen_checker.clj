; Reads histories in EDN, one operation a line, and prints the anomalies of each that Jepsen's
; checker of Kafka finds: {:history "path", :operations n, :errors {...}, :bad [...]}, a line each.
(require '[clojure.edn :as edn]
         '[clojure.java.io :as io]
         '[jepsen.history :as history]
         '[jepsen.tests.kafka :as kafka])

(defn operations [path]
  (with-open [reader (io/reader path)]
    (history/history (mapv (fn [line] (history/op (edn/read-string line))) (line-seq reader)))))

(defn size [errors]
  (cond (map? errors) (reduce + 0 (vals (:unseen errors {})))
        (coll? errors) (count errors)
        :else 1))

(doseq [path *command-line-args*]
  (let [operations (operations path)
        errors (:errors (kafka/analysis operations {}))
        ; Transactions of Kafka do not isolate writes.
        allowed (kafka/allowed-error-types {:sub-via #{:assign}})
        bad (sort (remove allowed (keys errors)))]
    (println (pr-str {:history path
                      :operations (count operations)
                      :errors (into (sorted-map) (map (fn [[kind found]] [kind (size found)])) errors)
                      :bad (vec bad)
                      :first (into {} (map (fn [kind] [kind (pr-str (let [found (get errors kind)]
                                                                      (if (map? found) (:unseen found) (first found))))]))
                                   bad)}))
    (flush)))
(shutdown-agents)
