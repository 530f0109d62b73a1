//! `quarrier cluster kubernetes`: a cluster as a manifest.

/// Renders the manifest. The pods read the certificates from the secret `quarrier-cluster`.
pub(crate) fn manifest(workers: usize, image: &str) -> String {
    TEMPLATE.replace("{workers}", &workers.to_string()).replace("{image}", &quoted(image))
}

/// A string of YAML: JSON strings are such.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

const TEMPLATE: &str = r#"# kubectl create secret generic quarrier-cluster --from-file=certificates
# kubectl apply -f cluster.yaml
apiVersion: v1
kind: Service
metadata:
  name: quarrier-scheduler
spec:
  selector:
    app: quarrier-scheduler
  ports:
    - port: 50050
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: quarrier-scheduler
spec:
  # The state of a scheduler is in its memory.
  replicas: 1
  strategy:
    type: Recreate
  selector:
    matchLabels:
      app: quarrier-scheduler
  template:
    metadata:
      labels:
        app: quarrier-scheduler
    spec:
      containers:
        - name: scheduler
          image: {image}
          command: ["quarrier-cluster", "scheduler", "--listen", "$(POD_IP):50050", "--tls", "/certificates"]
          env:
            - name: POD_IP
              valueFrom:
                fieldRef:
                  fieldPath: status.podIP
          ports:
            - containerPort: 50050
          volumeMounts:
            - name: certificates
              mountPath: /certificates
              readOnly: true
      volumes:
        - name: certificates
          secret:
            secretName: quarrier-cluster
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: quarrier-worker
spec:
  replicas: {workers}
  selector:
    matchLabels:
      app: quarrier-worker
  template:
    metadata:
      labels:
        app: quarrier-worker
    spec:
      containers:
        - name: worker
          image: {image}
          command: ["quarrier-cluster", "worker", "quarrier-scheduler:50050", "--listen", "$(POD_IP)", "--tls", "/certificates"]
          env:
            - name: POD_IP
              valueFrom:
                fieldRef:
                  fieldPath: status.podIP
          volumeMounts:
            - name: certificates
              mountPath: /certificates
              readOnly: true
      volumes:
        - name: certificates
          secret:
            secretName: quarrier-cluster
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_workers_and_the_image_are_filled_in() {
        let text = manifest(64, "registry.example/quarrier:1\"");
        assert!(text.contains("replicas: 64\n"), "{text}");
        assert_eq!(text.matches(r#"image: "registry.example/quarrier:1\"""#).count(), 2);
        assert!(!text.contains('{') && !text.contains("&pod"), "{text}");
    }
}
